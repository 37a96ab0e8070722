// Scores and sums of a piece over keys and values in f32, f16 or bf16, which are widened in registers.

#pragma once

#include "ops/attention_piece.hpp"

namespace llmd::LLMD_ISA {

// Scores of kBlocks blocks: queries [head_dim][stride], scores [kQueries][kPartition].
template <class Element, int kQueries, int kBlocks>
void score_float_blocks(const AttentionArgs& args, const KvPartition& partition, int64_t b,
                        const float* queries, int64_t stride, float* scores) {
    constexpr int kVecs = kBlocks * kVecsPerBlock;
    const Element* keys[kBlocks];
    const Element* next[kBlocks];
    unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
        keys[i] = reinterpret_cast<const Element*>(partition.keys(b + i));
        next[i] = reinterpret_cast<const Element*>(partition.after_keys(b + i));
    });
    Vec sums[kQueries * kVecs];
    unroll<kQueries * kVecs>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    for (int64_t d = 0; d < args.head_dim; ++d) {
        Vec key[kVecs];
        unroll<kBlocks>([&](auto i) LLMD_LAMBDA { __builtin_prefetch(next[i] + d * kBlockLen); });
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            key[i] = load(keys[i / kVecsPerBlock] + d * kBlockLen + i % kVecsPerBlock * Vec::kLanes);
        });
        unroll<kQueries>([&](auto m) LLMD_LAMBDA {
            const Vec q = set1(queries[d * stride + m]);
            unroll<kVecs>([&](auto i)
                              LLMD_LAMBDA { sums[m * kVecs + i] = fma(q, key[i], sums[m * kVecs + i]); });
        });
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            const Vec score = finish_score(args, sums[m * kVecs + i] * set1(args.scale));
            store(scores + m * kPartition + b * kBlockLen + i * Vec::kLanes, score);
        });
    });
}

template <class Element>
void score_floats(const AttentionArgs& args, const KvPartition& partition, const float* queries, int count,
                  float* scores) {
    each_run<kFloatTile / kVecsPerBlock>(count, [&](auto size, int first) LLMD_LAMBDA {
        constexpr int kQueries = decltype(size){};
        constexpr int kBlocks = together(kFloatTile, kQueries * kVecsPerBlock, 8);
        const float* of = queries + first;
        float* to = scores + first * kPartition;
        for (int64_t b = 0; b < partition.count; b += kBlocks)
            score_float_blocks<Element, kQueries, kBlocks>(args, partition, b, of, count, to);
    });
}

// Adds kVecs vectors of weighted values, beginning with element `d`, of tokens [from, to) of a partition,
// which every query attends to: weights [kQueries][kPartition], outputs [kQueries][dim].
template <class Element, int kQueries, int kVecs, class Tokens>
void add_float_values(const Tokens& partition, int64_t from, int64_t to, const float* weights, float* outputs,
                      int64_t dim, int64_t d) {
    Vec sums[kQueries * kVecs];
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>(
            [&](auto i) LLMD_LAMBDA { sums[m * kVecs + i] = load(outputs + m * dim + d + i * Vec::kLanes); });
    });
    for (int64_t t = from; t < to;) {
        constexpr int64_t kRun = Tokens::kRunTokens;
        const int64_t b = t / kRun;
        const auto* values = reinterpret_cast<const Element*>(partition.values(b)) - b * kRun * dim + d;
        const auto* next = reinterpret_cast<const Element*>(partition.after_values(b)) - b * kRun * dim + d;
        for (const int64_t end = to < (b + 1) * kRun ? to : (b + 1) * kRun; t < end; ++t) {
            Vec value[kVecs];
            unroll<kVecs>([&](auto i) LLMD_LAMBDA { value[i] = load(values + t * dim + i * Vec::kLanes); });
            for (int64_t i = 0; i < kVecs * Vec::kLanes; i += kLine / static_cast<int64_t>(sizeof(Element)))
                __builtin_prefetch(next + t * dim + i);
            unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                const Vec p = set1(weights[m * kPartition + t]);
                unroll<kVecs>(
                    [&](auto i) LLMD_LAMBDA { sums[m * kVecs + i] = fma(p, value[i], sums[m * kVecs + i]); });
            });
        }
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>(
            [&](auto i) LLMD_LAMBDA { store(outputs + m * dim + d + i * Vec::kLanes, sums[m * kVecs + i]); });
    });
}

// Adds tokens [from, to) of a partition to the queries that attend to them. The values of other tokens may
// be anything, even NaN.
template <class Element, class Tokens>
void add_seen_values(const Tokens& partition, int64_t from, int64_t to, const Query* queries, int count,
                     const float* weights, float* outputs, int64_t dim, int64_t width) {
    for (int64_t t = from; t < to; ++t) {
        constexpr int64_t kRun = Tokens::kRunTokens;
        const auto* values = reinterpret_cast<const Element*>(partition.values(t / kRun)) + t % kRun * dim;
        for (int m = 0; m < count; ++m) {
            if (partition.start + t < queries[m].first || partition.start + t > queries[m].last) continue;
            float* out = outputs + m * dim;
            const Vec p = set1(weights[m * kPartition + t]);
            for (int64_t d = 0; d < width; d += Vec::kLanes)
                store(out + d, fma(p, load(values + d), load(out + d)));
        }
    }
}

// Adds the first `width` elements of values, which are `dim` elements apart.
template <class Element, class Tokens>
void add_floats(const Tokens& partition, const Query* queries, int count, const float* weights,
                float* outputs, int64_t dim, int64_t width) {
    const int64_t columns = partition.tokens();
    const auto column = [&](int64_t position) {
        const int64_t t = position - partition.start;
        return t < 0 ? 0 : t > columns ? columns : t;
    };
    const int64_t begin = column(queries[0].first);
    const int64_t end = column(queries[count - 1].last + 1);
    int64_t from = column(queries[count - 1].first);  // all queries attend to [from, to)
    int64_t to = column(queries[0].last + 1);
    if (from >= to) from = to = end;
    add_seen_values<Element>(partition, begin, from, queries, count, weights, outputs, dim, width);
    each_run<kFloatTile>(count, [&](auto size, int first) LLMD_LAMBDA {
        constexpr int kQueries = decltype(size){};
        constexpr int kVecs = together(kFloatTile, kQueries, 4);
        const float* of = weights + first * kPartition;
        float* out = outputs + first * dim;
        int64_t d = 0;
        for (; d + kVecs * Vec::kLanes <= width; d += kVecs * Vec::kLanes)
            add_float_values<Element, kQueries, kVecs>(partition, from, to, of, out, dim, d);
        for (; d < width; d += Vec::kLanes)
            add_float_values<Element, kQueries, 1>(partition, from, to, of, out, dim, d);
    });
    add_seen_values<Element>(partition, to, end, queries, count, weights, outputs, dim, width);
}

}  // namespace llmd::LLMD_ISA
