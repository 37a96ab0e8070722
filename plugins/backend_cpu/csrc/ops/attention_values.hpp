// The second half of an attention tile: values weighted by the exponentials, added in the order of positions.

#pragma once

#include "ops/attention_scores.hpp"

namespace llmd::LLMD_ISA {

// What values of a block are multiplied by: `at` [kQueries][16 tokens], queries `stride` apart.
struct Weights {
    const float* at;
    int64_t stride;
};

// Probabilities of a block, times the scales of one group of its values where these have some.
template <class Element, int kQueries>
LLMD_INLINE Weights weigh(const KvHalf<Element>& values, const TileScratch& scratch, int64_t column,
                          int64_t group) {
    const float* scores = scratch.scores + column;
    if constexpr (!kScaled<Element>) return {scores, kChunk};
    unroll<kVecsPerBlock>([&](auto i) LLMD_LAMBDA {
        const Vec scale = load(values.scales + group * kBlockLen + i * Vec::kLanes);
        unroll<kQueries>([&](auto m) LLMD_LAMBDA {
            const Vec weight = load(scores + m * kChunk + i * Vec::kLanes) * scale;
            store(scratch.weights + m * kBlockLen + i * Vec::kLanes, weight);
        });
    });
    return {scratch.weights, kBlockLen};
}

// Adds kVecs vectors of weighted values, elements from `d` on, of a block that every query of the tile sees
// whole.
template <class Element, int kQueries, int kVecs>
LLMD_INLINE void add_values(const Element* values, Weights weights, float* out, int64_t dim, int64_t d) {
    Vec sums[kQueries * kVecs];
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i)
                          LLMD_LAMBDA { sums[m * kVecs + i] = load(out + m * dim + d + i * Vec::kLanes); });
    });
    for (int64_t t = 0; t < kBlockLen; ++t) {
        Vec value[kVecs];
        unroll<kVecs>([&](auto i) LLMD_LAMBDA { value[i] = load(values + t * dim + d + i * Vec::kLanes); });
        unroll<kQueries>([&](auto m) LLMD_LAMBDA {
            const Vec p = set1(weights.at[m * weights.stride + t]);
            unroll<kVecs>([&](auto i)
                              LLMD_LAMBDA { sums[m * kVecs + i] = fma(p, value[i], sums[m * kVecs + i]); });
        });
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i)
                          LLMD_LAMBDA { store(out + m * dim + d + i * Vec::kLanes, sums[m * kVecs + i]); });
    });
}

// Adds tokens [from, to) of elements [first, last) to one query. What other tokens left may be anything, even
// NaN.
template <class Element>
void add_some_values(const Element* values, const float* weights, float* out, int64_t dim, int64_t first,
                     int64_t last, int64_t from, int64_t to) {
    for (int64_t d = first; d < last; d += Vec::kLanes) {
        Vec total = load(out + d);
        for (int64_t t = from; t < to; ++t) total = fma(set1(weights[t]), load(values + t * dim + d), total);
        store(out + d, total);
    }
}

template <class Element, int kQueries>
void add_block(const Query* queries, const KvHalf<Element>& values, const TileScratch& scratch, int64_t start,
               int64_t column, int64_t dim) {
    constexpr int kTile = kQueryTile / kQueries > 4 ? 4 : kQueryTile / kQueries;
    constexpr int kGroupVecs = static_cast<int>(kKvGroup) / Vec::kLanes;
    constexpr int kVecs = kScaled<Element> && kTile > kGroupVecs ? kGroupVecs : kTile;
    constexpr int64_t kStep = kVecs * Vec::kLanes;
    const int64_t width = kScaled<Element> ? kKvGroup : dim;  // elements that share their weights
    bool all = true;
    for (int m = 0; m < kQueries; ++m) {
        all = all && queries[m].first <= start && start + kBlockLen - 1 <= queries[m].last;
    }
    for (int64_t first = 0; first < dim; first += width) {
        const int64_t last = first + width < dim ? first + width : dim;
        const Weights weights = weigh<Element, kQueries>(values, scratch, column, first / width);
        if (all) {
            int64_t d = first;
            for (; d + kStep <= last; d += kStep)
                add_values<Element, kQueries, kVecs>(values.codes, weights, scratch.outputs, dim, d);
            for (; d < last; d += Vec::kLanes)
                add_values<Element, kQueries, 1>(values.codes, weights, scratch.outputs, dim, d);
            continue;
        }
        for (int m = 0; m < kQueries; ++m) {
            const int64_t from = queries[m].first > start ? queries[m].first - start : 0;
            const int64_t to =
                queries[m].last + 1 - start < kBlockLen ? queries[m].last + 1 - start : kBlockLen;
            add_some_values(values.codes, weights.at + m * weights.stride, scratch.outputs + m * dim, dim,
                            first, last, from, to);
        }
    }
}

}  // namespace llmd::LLMD_ISA
