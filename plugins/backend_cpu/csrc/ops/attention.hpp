// attention: out = softmax(softcap(q . k * scale)) v over the positions that a row sees
//
//   q, out  [rows, heads, head_dim]  f32     k, v  [rows, kv_heads, head_dim]  f32, written to the pool first
//   pool    f32 or f16, see kv_layout.hpp     sums in f32
//   work    up to kQueryTile queries of one sequence and kv head at a time; the query heads of a group share
//   each key order   chunks of 512 positions counted from 0 (online softmax); inside one, scores run over
//   head_dim, values over
//           positions, both ascending: a row's result depends on its own position alone
//   check   relative error < 1e-5 in f32, < 2e-3 with f16 KV   (tests/plugins/backend_cpu/test_device.py)
//   from    Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"; Kwon et al. 2023,
//   "PagedAttention"

#pragma once

#include "ops/attention_tile.hpp"

namespace llmd::LLMD_ISA {

// Puts the keys and values of the step into their blocks.
template <class Element>
void write_kv_as(const AttentionArgs& args, Worker& worker) {
    const KvLayout layout{args.kv_heads, padded_dim(args.head_dim)};
    auto* pool = static_cast<Element*>(args.pool);
    int64_t sequence = 0;
    for (int64_t r; (r = worker.take(1)) < args.rows;) {
        while (args.row_offsets[sequence + 1] <= r) ++sequence;
        const int64_t position = args.positions[r];
        const int32_t block = args.block_table[sequence * args.table_width + position / kBlockLen];
        const int64_t token = position % kBlockLen;
        for (int64_t head = 0; head < args.kv_heads; ++head) {
            Element* keys = pool + block * layout.block_size() + head * layout.head_size();
            Element* values = keys + layout.half() + token * layout.padded_dim;
            const int64_t from = (r * args.kv_heads + head) * args.head_dim;
            for (int64_t i = 0; i < args.head_dim; i += Vec::kLanes) {
                const int64_t left = args.head_dim - i;
                const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
                Element key[Vec::kLanes];
                store(key, load_n(args.k + from + i, n));
                for (int j = 0; j < n; ++j) keys[(i + j) * kBlockLen + token] = key[j];
                store(values + i, load_n(args.v + from + i, n));
            }
        }
    }
}

template <class Element, int kQueries>
void attend_from(const AttentionArgs& args, const QueryTile& tile, float* scratch) {
    if constexpr (kQueries > 0) {
        if (tile.queries == kQueries) return attend_tile<Element, kQueries>(args, tile, scratch);
        return attend_from<Element, kQueries - 1>(args, tile, scratch);
    }
}

// Splits the queries of every (sequence, kv head) into tiles and shares the tiles out.
template <class Element>
void attend(const AttentionArgs& args, Worker& worker) {
    float* scratch = args.scratch + worker.id * args.scratch_per_thread;
    const int64_t repeats = args.heads / args.kv_heads;
    int64_t sequence = 0;
    int64_t tiles_before = 0;
    for (int64_t item = worker.take(1); sequence < args.sequences;) {
        const int64_t first_row = args.row_offsets[sequence];
        const int64_t last_row = args.row_offsets[sequence + 1] - 1;
        const int64_t queries = (last_row + 1 - first_row) * repeats;
        const int64_t tiles = (queries + kQueryTile - 1) / kQueryTile;
        if (item >= tiles_before + tiles * args.kv_heads) {
            tiles_before += tiles * args.kv_heads;
            ++sequence;
            continue;
        }
        const int64_t kv_head = (item - tiles_before) / tiles;
        const int64_t first = (item - tiles_before) % tiles * kQueryTile;
        const auto count = static_cast<int>(queries - first < kQueryTile ? queries - first : kQueryTile);
        const int32_t* blocks = args.block_table + sequence * args.table_width;
        attend_from<Element, kQueryTile>(args, {blocks, first_row, last_row, kv_head, first, repeats, count},
                                         scratch);
        item = worker.take(1);
    }
}

void write_kv(const AttentionArgs& args, Worker& worker) {
    if (args.half_precision)
        write_kv_as<F16>(args, worker);
    else
        write_kv_as<float>(args, worker);
}

void attention(const AttentionArgs& args, Worker& worker) {
    if (args.half_precision)
        attend<F16>(args, worker);
    else
        attend<float>(args, worker);
}

}  // namespace llmd::LLMD_ISA
