// attention: out = softmax(softcap(q . k * scale)) v over the positions that a row sees
//
//   q, out  [rows, heads, head_dim]  f32
//   pool    f32, f16, bf16, int8, see kv_layout.hpp     widened in registers, sums in f32
//   work    up to kQueryTile queries of one sequence and kv head at a time; the query heads of a group share
//   each key order   chunks of 512 positions counted from 0 (online softmax); inside one, scores run over
//   head_dim, values over
//           positions, both ascending: a row's result depends on its own position alone
//   encoder_attention   the same with `causal` false: a row sees every row of its sequence in the step, and
//           its result depends on how many these are
//   int8    scales multiply sums over the 32 elements that share them (keys), or probabilities (values)
//   check   NMSE < 1e-10 in f32, 1e-5 with f16 KV, 1e-4 bf16, 1e-3 int8
//           (tests/plugins/backend_cpu/test_device.py)
//   from    Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"; Kwon et al. 2023,
//           "PagedAttention"

#pragma once

#include "ops/attention_tile.hpp"

namespace llmd::LLMD_ISA {

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

void attention(const AttentionArgs& args, Worker& worker) {
    for_element(args.dtype, [&](auto element) { attend<decltype(element)>(args, worker); });
}

}  // namespace llmd::LLMD_ISA
