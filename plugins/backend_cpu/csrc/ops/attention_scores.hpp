// The first half of an attention tile: scores of its queries, and their exponentials under a running maximum.

#pragma once

#include "ops/kv_blocks.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kChunk = 512;  // positions between two rescalings of the online softmax
constexpr int kVecsPerBlock = static_cast<int>(kBlockLen) / Vec::kLanes;
constexpr float kMinusInfinity = -__builtin_inff();

// One query, and the state of its online softmax.
struct Query {
    int64_t row;    // of the step
    int64_t head;   // query head
    int64_t first;  // first position that it sees
    int64_t last;   // its own position
    float top;      // largest score so far
    Vec total;      // sum of exponentials, a partial sum for each lane
};

// Scratch of a thread: queries [padded_dim][kQueries], probabilities [kQueries][kChunk], outputs
// [kQueries][padded_dim], and weights [kQueries][kBlockLen]: probabilities of a block times scales.
struct TileScratch {
    float* queries;
    float* scores;
    float* outputs;
    float* weights;
};

// Adds the products of queries and keys over elements [first, last) of the head to `sums`.
template <class Element, int kQueries, int kBlocks, class Sums>
LLMD_INLINE void add_products(const KvHalf<Element>* keys, const float* queries, int64_t first, int64_t last,
                              Sums& sums) {
    constexpr int kVecs = kBlocks * kVecsPerBlock;
    for (int64_t d = first; d < last; ++d) {
        Vec key[kVecs];
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            key[i] = load(keys[i / kVecsPerBlock].codes + d * kBlockLen + i % kVecsPerBlock * Vec::kLanes);
        });
        unroll<kQueries>([&](auto m) LLMD_LAMBDA {
            const Vec q = set1(queries[d * kQueries + m]);
            unroll<kVecs>([&](auto i)
                              LLMD_LAMBDA { sums[m * kVecs + i] = fma(q, key[i], sums[m * kVecs + i]); });
        });
    }
}

// As `add_products` over the whole head, for codes with scales.
template <class Element, int kQueries, int kBlocks, class Sums>
LLMD_INLINE void add_scaled_products(const KvHalf<Element>* keys, const float* queries, int64_t head_dim,
                                     Sums& sums) {
    constexpr int kVecs = kBlocks * kVecsPerBlock;
    for (int64_t first = 0; first < head_dim; first += kKvGroup) {
        Vec products[kQueries * kVecs];
        unroll<kQueries * kVecs>([&](auto i) LLMD_LAMBDA { products[i] = set1(0.0F); });
        const int64_t last = first + kKvGroup < head_dim ? first + kKvGroup : head_dim;
        add_products<Element, kQueries, kBlocks>(keys, queries, first, last, products);
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            const F16* scales = keys[i / kVecsPerBlock].scales + first / kKvGroup * kBlockLen;
            const Vec scale = load(scales + i % kVecsPerBlock * Vec::kLanes);
            unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                sums[m * kVecs + i] = fma(products[m * kVecs + i], scale, sums[m * kVecs + i]);
            });
        });
    }
}

// Scores of kBlocks blocks at a time: [kQueries][kChunk] from column `column` on.
template <class Element, int kQueries, int kBlocks>
void score_blocks(const AttentionArgs& args, const KvHalf<Element>* keys, const TileScratch& scratch,
                  int64_t column) {
    constexpr int kVecs = kBlocks * kVecsPerBlock;
    Vec sums[kQueries * kVecs];
    unroll<kQueries * kVecs>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    if constexpr (kScaled<Element>)
        add_scaled_products<Element, kQueries, kBlocks>(keys, scratch.queries, args.head_dim, sums);
    else
        add_products<Element, kQueries, kBlocks>(keys, scratch.queries, 0, args.head_dim, sums);
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            Vec score = sums[m * kVecs + i] * set1(args.scale);
            if (args.softcap > 0.0F) score = softcap(score, args.softcap);
            store(scratch.scores + m * kChunk + column + i * Vec::kLanes, score);
        });
    });
}

// Scores of a query outside of what it sees become minus infinity. Columns [0, columns) stand for positions
// from `start` on.
LLMD_INLINE void hide(float* scores, int64_t start, int64_t columns, int64_t first, int64_t last) {
    for (int64_t i = 0; i < columns && start + i < first; ++i) scores[i] = kMinusInfinity;
    for (int64_t i = last + 1 > start ? last + 1 - start : 0; i < columns; ++i) scores[i] = kMinusInfinity;
}

// Turns scores into exponentials, and rescales what was summed before by the new largest score.
void exponentiate(Query& query, float* scores, int64_t columns, float* out, int64_t dim) {
    Vec top = set1(query.top);
    for (int64_t i = 0; i < columns; i += Vec::kLanes) top = max(top, load(scores + i));
    const float largest_score = largest(top);
    const Vec rescale = exp(set1(query.top) - set1(largest_score));
    Vec total = query.total * rescale;
    for (int64_t i = 0; i < columns; i += Vec::kLanes) {
        const Vec e = exp(load(scores + i) - set1(largest_score));
        store(scores + i, e);
        total = total + e;
    }
    if (largest_score > query.top) {
        for (int64_t i = 0; i < dim; i += Vec::kLanes) store(out + i, load(out + i) * rescale);
    }
    query.top = largest_score;
    query.total = total;
}

}  // namespace llmd::LLMD_ISA
