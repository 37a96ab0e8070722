// Scores of a piece over latent vectors in f32, f16 or bf16, which are stored token after token: each is the
// key of its token, and its first elements are the value.
//
// A score is summed over lanes of elements and then over the lanes, in an order that depends on nothing but
// the width of a key.

#pragma once

#include "ops/attention_piece.hpp"

namespace llmd::LLMD_ISA {

constexpr int kLatentTokens = 4;  // scored together
constexpr int kLatentQueries = kFloatTile >= 16 ? 4 : kFloatTile >= 12 ? 2 : 1;

// Scores of kLatentTokens tokens from token t of a partition on: queries [kQueries][dim].
template <class Element, int kQueries>
LLMD_INLINE void score_latent_tokens(const LatentPartition& partition, int64_t t, int64_t dim,
                                     const float* queries, float scale, float* scores) {
    const Element* keys[kLatentTokens];
    const Element* next[kLatentTokens];
    unroll<kLatentTokens>([&](auto i) LLMD_LAMBDA {
        keys[i] = reinterpret_cast<const Element*>(partition.keys(t + i));
        next[i] = reinterpret_cast<const Element*>(partition.after_keys(t + i));
    });
    Vec sums[kQueries * kLatentTokens];
    unroll<kQueries * kLatentTokens>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    for (int64_t d = 0; d < dim; d += Vec::kLanes) {
        Vec query[kQueries];
        unroll<kQueries>([&](auto m) LLMD_LAMBDA { query[m] = load(queries + m * dim + d); });
        unroll<kLatentTokens>([&](auto i) LLMD_LAMBDA {
            __builtin_prefetch(next[i] + d);
            const Vec key = load(keys[i] + d);
            unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                sums[m * kLatentTokens + i] = fma(query[m], key, sums[m * kLatentTokens + i]);
            });
        });
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kLatentTokens>([&](auto i) LLMD_LAMBDA {
            scores[m * kPartition + t + i] = sum(sums[m * kLatentTokens + i]) * scale;
        });
    });
}

// Products of queries [count][dim] and keys times `scale`, of all tokens of a partition: scores
// [count][kPartition].
template <class Element>
void score_latent(const LatentPartition& partition, const float* queries, int count, int64_t dim, float scale,
                  float* scores) {
    const auto run = [&](auto size, int first) LLMD_LAMBDA {
        constexpr int kQueries = decltype(size){};
        for (int64_t t = 0; t < partition.tokens(); t += kLatentTokens)
            score_latent_tokens<Element, kQueries>(partition, t, dim, queries + first * dim, scale,
                                                   scores + first * kPartition);
    };
    int first = 0;
    for (; first + kLatentQueries <= count; first += kLatentQueries) run(Index<kLatentQueries>{}, first);
    for (; first < count; ++first) run(Index<1>{}, first);
}

// Lists the tokens of a partition from position `start` to `last`, or from number `start` to number `last` of
// the positions `chosen` for a row, which is at position `row`.
LLMD_INLINE void list_latent(const KvBlocks& pool, const int32_t* blocks, int64_t head, int64_t start,
                             int64_t last, const float* chosen, int64_t row, LatentPartition& partition) {
    const int64_t tokens = last + 1 - start < kPartition ? last + 1 - start : kPartition;
    partition.start = start;
    partition.count = (tokens + kBlockLen - 1) / kBlockLen * kBlockLen;
    partition.half_bytes = 0;
    const int64_t vectors = pool.layout.vectors;
    const int64_t token_bytes = pool.layout.half_bytes() / vectors;
    for (int64_t i = 0; i < partition.count + LatentPartition::kAheadRuns; ++i) {
        int64_t position = start + i < last ? start + i : last;
        if (chosen != nullptr) {
            // No number that is not a position of the sequence leads outside its blocks.
            const float number = chosen[position];
            position =
                number > 0.0F ? number < static_cast<float>(row) ? static_cast<int64_t>(number) : row : 0;
        }
        partition.at[i] = pool.keys(blocks[position / vectors], head) + position % vectors * token_bytes;
    }
}

}  // namespace llmd::LLMD_ISA
