// indexer: the positions that attention is limited to
//
//   q             [rows, heads, head_dim]  f32      out  [rows, top_k]  f32: positions, ascending, then -1
//   head_weights  [rows, heads]  f32                pool  index keys as f32, f16 or bf16, see kv_layout.hpp
//   score  sum over heads of head_weights[h] * max(q[h] . k, 0), in ascending order, in f32; a product is
//          summed over lanes and then over the lanes (ops/attention_latent.hpp)
//   chosen the top_k positions with the highest scores, of equal ones the later; NaN has some place in this
//          order
//   work   as many rows at a time as there are threads: first their partitions, then the choice for each
//          row. A score depends only on the row and the position, and so does the choice
//   how    the choice counts scores by 8 bits of their order at a time, the highest first, until it knows
//          the lowest score that is chosen
//   check  NMSE of attention < 1e-9 in f32   (the cases "indexer" of llmd.testing.indexer_cases)
//   from   DeepSeek-AI 2025, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models"

#pragma once

#include "ops/attention_latent.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE int64_t padded_queries(int64_t heads, int64_t head_dim) {
    return heads * KvLayout{KvDtype::kF32, 1, head_dim}.padded_dim();
}

int64_t indexer_scratch(int64_t heads, int64_t head_dim) {
    return padded_queries(heads, head_dim) + kPieceQueries * kPartition;
}

// An integer with the order of floats.
LLMD_INLINE uint32_t order_of(float score) {
    uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}

// Scores of the positions of one partition that a row may see.
template <class Element>
void score_positions(const IndexerArgs& args, int64_t row, int64_t number, float* scratch, float* scores) {
    const AttentionArgs& of = args.keys;
    const KvBlocks pool(of);
    const int64_t dim = pool.layout.padded_dim();
    float* queries = scratch;
    float* products = scratch + padded_queries(of.heads, of.head_dim);
    for (int64_t h = 0; h < of.heads; ++h) {
        const float* q = of.q + (row * of.heads + h) * of.head_dim;
        for (int64_t d = 0; d < dim; ++d) queries[h * dim + d] = d < of.head_dim ? q[d] : 0.0F;
    }
    const int64_t start = number * kPartition;
    const int32_t* blocks = of.block_table + sequence_of(of, row) * of.table_width;
    LatentPartition partition;
    list_latent(pool, blocks, 0, start, of.positions[row], nullptr, 0, partition);
    float totals[kPartition];
    for (int64_t i = 0; i < partition.tokens(); ++i) totals[i] = 0.0F;
    for (int64_t first = 0; first < of.heads; first += kPieceQueries) {
        const int64_t left = of.heads - first;
        const int count = static_cast<int>(left < kPieceQueries ? left : kPieceQueries);
        score_latent<Element>(partition, queries + first * dim, count, dim, 1.0F, products);
        for (int m = 0; m < count; ++m) {
            const Vec weight = set1(args.head_weights[row * of.heads + first + m]);
            const float* product = products + m * kPartition;
            for (int64_t i = 0; i < partition.tokens(); i += Vec::kLanes)
                store(totals + i, fma(weight, max(load(product + i), set1(0.0F)), load(totals + i)));
        }
    }
    const int64_t seen = of.positions[row] + 1 - start;
    for (int64_t i = 0; i < seen && i < kPartition; ++i) scores[start + i] = totals[i];
}

// Writes the `most` positions of `count` with the highest scores; most < count.
LLMD_INLINE void choose(const float* scores, int64_t count, int64_t most, float* out) {
    uint32_t lowest = 0;  // the upper bits of the lowest order that is chosen, as far as they are known
    uint32_t known = 0;
    int64_t left = most;    // positions to choose among those with these bits
    int64_t equal = count;  // positions with these bits
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t counts[256] = {};
        for (int64_t i = 0; i < count; ++i) {
            const uint32_t order = order_of(scores[i]);
            counts[order >> shift & 255] += (order & known) == lowest;
        }
        uint32_t byte = 255;
        for (; byte > 0 && counts[byte] < left; --byte) left -= counts[byte];
        lowest |= byte << shift;
        known |= uint32_t{255} << shift;
        equal = counts[byte];
    }
    int64_t skipped = equal - left;  // the first ones of equal positions
    int64_t found = 0;
    for (int64_t i = 0; i < count && found < most; ++i) {
        const uint32_t order = order_of(scores[i]);
        if (order < lowest || (order == lowest && skipped-- > 0)) continue;
        out[found++] = static_cast<float>(i);
    }
}

template <class Element>
void choose_positions(const IndexerArgs& args, Worker& worker) {
    const AttentionArgs& of = args.keys;
    float* scratch = of.scratch + worker.id * of.scratch_per_thread;
    const auto scores_of = [&](int64_t i) LLMD_LAMBDA { return args.scores + i * args.most_positions; };
    for (int64_t first = 0; first < of.rows; first += worker.count) {
        const int64_t rows = of.rows - first < worker.count ? of.rows - first : worker.count;
        // A row that sees no more than top_k positions needs no scores.
        const auto partitions = [&](int64_t i) LLMD_LAMBDA -> int64_t {
            const int64_t position = of.positions[first + i];
            return position < args.top_k ? 0 : position / kPartition + 1;
        };
        int64_t item = worker.take(1);
        for (int64_t i = 0, before = 0; i < rows; before += partitions(i++)) {
            for (; item < before + partitions(i); item = worker.take(1))
                score_positions<Element>(args, first + i, item - before, scratch, scores_of(i));
        }
        worker.barrier();
        while ((item = worker.take(1)) < rows) {
            float* out = args.out + (first + item) * args.top_k;
            const int64_t seen = of.positions[first + item] + 1;
            if (seen > args.top_k) {
                choose(scores_of(item), seen, args.top_k, out);
                continue;
            }
            for (int64_t i = 0; i < args.top_k; ++i) out[i] = i < seen ? static_cast<float>(i) : -1.0F;
        }
        worker.barrier();
    }
}

void indexer(const IndexerArgs& args, Worker& worker) {
    for_element(args.keys.dtype, [&](auto element) {
        if constexpr (!kCoded<decltype(element)>) choose_positions<decltype(element)>(args, worker);
    });
}

}  // namespace llmd::LLMD_ISA
