// One tile of attention: a few queries of one sequence that read the same keys and values.

#pragma once

#include "ops/attention_values.hpp"

namespace llmd::LLMD_ISA {

struct QueryTile {
    const int32_t* blocks;  // of the sequence
    int64_t first_row;      // of the sequence in the step
    int64_t last_row;
    int64_t kv_head;
    int64_t first;    // query i of the sequence and kv head is row i / repeats, head i % repeats of the group
    int64_t repeats;  // query heads that share a kv head
    int queries;
};

int64_t attention_scratch(int64_t head_dim) {
    const int64_t dim = KvLayout{KvDtype::kF32, 1, head_dim}.padded_dim();
    return kQueryTile * (2 * dim + kChunk + kBlockLen);
}

void begin(const AttentionArgs& args, const QueryTile& tile, Query* queries, const TileScratch& scratch,
           int64_t dim) {
    for (int m = 0; m < tile.queries; ++m) {
        const int64_t number = tile.first + m;
        Query& query = queries[m];
        query.row = tile.first_row + number / tile.repeats;
        query.head = tile.kv_head * tile.repeats + number % tile.repeats;
        query.last = args.positions[args.causal ? query.row : tile.last_row];
        const int64_t oldest = query.last - args.window + 1;
        query.first = args.window > 0 && oldest > 0 ? oldest : 0;
        query.top = kMinusInfinity;
        query.total = set1(0.0F);
        const float* q = args.q + (query.row * args.heads + query.head) * args.head_dim;
        for (int64_t d = 0; d < args.head_dim; ++d) scratch.queries[d * tile.queries + m] = q[d];
    }
    const int64_t outputs = tile.queries * dim;
    for (int64_t i = 0; i < outputs; i += Vec::kLanes) store(scratch.outputs + i, set1(0.0F));
}

void write_outputs(const AttentionArgs& args, const Query* queries, int count, const float* outputs,
                   int64_t dim) {
    for (int m = 0; m < count; ++m) {
        const Query& query = queries[m];
        const Vec inverse = set1(1.0F / sum(query.total));
        float* out = args.out + (query.row * args.heads + query.head) * args.head_dim;
        for (int64_t d = 0; d < args.head_dim; d += Vec::kLanes) {
            const int64_t left = args.head_dim - d;
            const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
            store_n(out + d, load(outputs + m * dim + d) * inverse, n);
        }
    }
}

template <class Element, int kQueries>
void attend_tile(const AttentionArgs& args, const QueryTile& tile, float* memory) {
    constexpr int kTogether = kQueryTile / kQueries > 4 ? 4 : kQueryTile / kQueries;
    const KvBlocks<Element> pool(args);
    const int64_t dim = pool.layout.padded_dim();
    const TileScratch scratch{memory, memory + kQueries * dim, memory + kQueries * (dim + kChunk),
                              memory + kQueries * (2 * dim + kChunk)};
    Query queries[kQueries];
    begin(args, tile, queries, scratch, dim);

    const auto keys_of = [&](int64_t position) LLMD_LAMBDA {
        return pool.keys(tile.blocks[position / kBlockLen], tile.kv_head);
    };
    const int64_t end = queries[kQueries - 1].last + 1;
    for (int64_t start = queries[0].first / kBlockLen * kBlockLen, stop; start < end; start = stop) {
        stop = (start / kChunk + 1) * kChunk;
        const int64_t blocks = ((stop < end ? stop : end) - start + kBlockLen - 1) / kBlockLen;
        const int64_t columns = blocks * kBlockLen;
        int64_t b = 0;
        for (; b + kTogether <= blocks; b += kTogether) {
            KvHalf<Element> keys[kTogether];
            for (int i = 0; i < kTogether; ++i) keys[i] = keys_of(start + (b + i) * kBlockLen);
            score_blocks<Element, kQueries, kTogether>(args, keys, scratch, b * kBlockLen);
        }
        for (; b < blocks; ++b) {
            const KvHalf<Element> keys = keys_of(start + b * kBlockLen);
            score_blocks<Element, kQueries, 1>(args, &keys, scratch, b * kBlockLen);
        }
        for (int m = 0; m < kQueries; ++m) {
            if (queries[m].last < start || queries[m].first >= start + columns) continue;
            float* scores = scratch.scores + m * kChunk;
            hide(scores, start, columns, queries[m].first, queries[m].last);
            exponentiate(queries[m], scores, columns, scratch.outputs + m * dim, dim);
        }
        for (b = 0; b < blocks; ++b) {
            const int64_t position = start + b * kBlockLen;
            const KvHalf<Element> values = pool.values(tile.blocks[position / kBlockLen], tile.kv_head);
            add_block<Element, kQueries>(queries, values, scratch, position, b * kBlockLen, dim);
        }
    }
    write_outputs(args, queries, kQueries, scratch.outputs, dim);
}

}  // namespace llmd::LLMD_ISA
