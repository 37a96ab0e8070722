// The second half of an attention tile: values weighted by the exponentials, added in the order of positions.

#pragma once

#include "ops/attention_scores.hpp"

namespace llmd::LLMD_ISA {

// Adds kVecs vectors of weighted values of a block that every query of the tile sees whole.
template <class Element, int kQueries, int kVecs>
void add_values(const Element* values, const TileScratch& scratch, int64_t column, int64_t dim, int64_t d) {
    Vec sums[kQueries * kVecs];
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            sums[m * kVecs + i] = load(scratch.outputs + m * dim + d + i * Vec::kLanes);
        });
    });
    for (int64_t t = 0; t < kBlockLen; ++t) {
        Vec value[kVecs];
        unroll<kVecs>([&](auto i) LLMD_LAMBDA { value[i] = load(values + t * dim + d + i * Vec::kLanes); });
        unroll<kQueries>([&](auto m) LLMD_LAMBDA {
            const Vec p = set1(scratch.scores[m * kChunk + column + t]);
            unroll<kVecs>([&](auto i)
                              LLMD_LAMBDA { sums[m * kVecs + i] = fma(p, value[i], sums[m * kVecs + i]); });
        });
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            store(scratch.outputs + m * dim + d + i * Vec::kLanes, sums[m * kVecs + i]);
        });
    });
}

// Adds the values of tokens [first, last) of a block to one query. What lies beyond may be anything, even
// NaN.
template <class Element>
void add_some_values(const Element* values, const float* probabilities, float* out, int64_t dim,
                     int64_t first, int64_t last) {
    for (int64_t d = 0; d < dim; d += Vec::kLanes) {
        Vec total = load(out + d);
        for (int64_t t = first; t < last; ++t)
            total = fma(set1(probabilities[t]), load(values + t * dim + d), total);
        store(out + d, total);
    }
}

template <class Element, int kQueries>
void add_block(const Query* queries, const Element* values, const TileScratch& scratch, int64_t start,
               int64_t column, int64_t dim) {
    constexpr int kVecs = kQueryTile / kQueries > 4 ? 4 : kQueryTile / kQueries;
    bool all = true;
    for (int m = 0; m < kQueries; ++m) {
        all = all && queries[m].first <= start && start + kBlockLen - 1 <= queries[m].last;
    }
    if (all) {
        int64_t d = 0;
        for (; d + kVecs * Vec::kLanes <= dim; d += kVecs * Vec::kLanes) {
            add_values<Element, kQueries, kVecs>(values, scratch, column, dim, d);
        }
        for (; d < dim; d += Vec::kLanes) add_values<Element, kQueries, 1>(values, scratch, column, dim, d);
        return;
    }
    for (int m = 0; m < kQueries; ++m) {
        const int64_t first = queries[m].first > start ? queries[m].first - start : 0;
        const int64_t last =
            queries[m].last + 1 - start < kBlockLen ? queries[m].last + 1 - start : kBlockLen;
        const float* probabilities = scratch.scores + m * kChunk + column;
        add_some_values(values, probabilities, scratch.outputs + m * dim, dim, first, last);
    }
}

}  // namespace llmd::LLMD_ISA
