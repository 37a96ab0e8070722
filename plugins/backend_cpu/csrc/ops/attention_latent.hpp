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

// Scores of kLatentTokens tokens from token t of a block on: queries [kQueries][dim].
template <class Element, int kQueries>
LLMD_INLINE void score_latent_tokens(const AttentionArgs& args, const Element* keys, const Element* next,
                                     int64_t dim, const float* queries, float* scores) {
    Vec sums[kQueries * kLatentTokens];
    unroll<kQueries * kLatentTokens>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    for (int64_t d = 0; d < dim; d += Vec::kLanes) {
        Vec query[kQueries];
        unroll<kQueries>([&](auto m) LLMD_LAMBDA { query[m] = load(queries + m * dim + d); });
        unroll<kLatentTokens>([&](auto t) LLMD_LAMBDA {
            __builtin_prefetch(next + t * dim + d);
            const Vec key = load(keys + t * dim + d);
            unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                sums[m * kLatentTokens + t] = fma(query[m], key, sums[m * kLatentTokens + t]);
            });
        });
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kLatentTokens>([&](auto t) LLMD_LAMBDA {
            scores[m * kPartition + t] = sum(sums[m * kLatentTokens + t]) * args.scale;
        });
    });
}

// Scores of a piece: queries [count][dim], scores [count][kPartition].
template <class Element>
void score_latent(const AttentionArgs& args, const KvPartition& partition, const float* queries, int count,
                  int64_t dim, float* scores) {
    const auto run = [&](auto size, int first) LLMD_LAMBDA {
        constexpr int kQueries = decltype(size){};
        for (int64_t b = 0; b < partition.count; ++b) {
            const auto* keys = reinterpret_cast<const Element*>(partition.keys(b));
            const auto* next = reinterpret_cast<const Element*>(partition.after_keys(b));
            for (int64_t t = 0; t < kBlockLen; t += kLatentTokens)
                score_latent_tokens<Element, kQueries>(args, keys + t * dim, next + t * dim, dim,
                                                       queries + first * dim,
                                                       scores + first * kPartition + b * kBlockLen + t);
        }
    };
    int first = 0;
    for (; first + kLatentQueries <= count; first += kLatentQueries) run(Index<kLatentQueries>{}, first);
    for (; first < count; ++first) run(Index<1>{}, first);
    if (args.softcap == 0.0F) return;
    for (int m = 0; m < count; ++m) {
        float* of = scores + m * kPartition;
        for (int64_t i = 0; i < partition.count * kBlockLen; i += Vec::kLanes)
            store(of + i, finish_score(args, load(of + i)));
    }
}

}  // namespace llmd::LLMD_ISA
