// attention: out = softmax(softcap(q . k * scale)) v over the positions that a row attends to
//
//   q       [rows, heads, head_dim]  f32      out  [rows, heads, value_dim]  f32
//   sinks   [heads]  one more score of each head, without a value
//   pool    f32, f16, bf16, int8, int4, see kv_layout.hpp
//   chosen  [rows, top_k]  f32: the numbers of the positions that a row attends to, ascending; only for
//           latent vectors. Otherwise a row attends to all positions before it, with the same bits as if all
//           were chosen
//   work    ops/attention_plan.hpp
//   order   partitions of 512 positions counted from 0, each with its own largest score, merged in order.
//           Floats: widened in registers; scores are summed over head_dim and values over positions, both
//           ascending, in f32. Codes: integer products, ops/attention_codes.hpp. The result of a row
//           depends only on its own position. Latent vectors: ops/attention_latent.hpp.
//   encoder_attention   the same with `causal` false: a row attends to every row of its sequence in the
//           step, and its result depends on how many there are
//   check   NMSE < 1e-10 in f32, 1e-5 with f16 KV, 1e-4 bf16, 1e-3 int8, 5e-2 int4
//           (tests/plugins/backend_cpu/test_device.py)
//   from    Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"; Kwon et al. 2023,
//           "PagedAttention"; Dao et al. 2023, "Flash-Decoding for long-context inference"
//   speed   bench/results, `kv-dtypes`

#pragma once

#include "ops/attention_tile.hpp"
#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

int64_t attention_scratch(int64_t head_dim) { return TileScratch::size(widest_dim(head_dim)); }

int64_t attention_partials(int64_t head_dim, int64_t positions, int threads) {
    const int64_t partitions = (positions + kPartition - 1) / kPartition;
    return partitions < 2 ? 0
                          : 2 * threads * partitions * partial_floats(kSplitQueries, widest_dim(head_dim));
}

// Calls f(cut, item, partials before it) for the items that this thread takes. `count(cut)` is
// the number of items of a sequence.
template <class Count, class F>
void take_items(const AttentionArgs& args, Worker& worker, const AttentionPlan& plan, Count&& count, F&& f) {
    int64_t items = 0;
    for (int64_t s = 0; s < plan.sequences(); ++s) items += count(plan.cut(s));
    int64_t before = 0;
    int64_t partials_before = 0;
    int64_t sequence = 0;
    each_near(worker, items, 1, [&](int64_t item) {
        if (item < before) before = partials_before = sequence = 0;
        Cut cut = plan.cut(sequence);
        for (int64_t of; item >= before + (of = count(cut)); cut = plan.cut(++sequence)) {
            before += of;
            if (cut.split) partials_before += cut.items(args.kv_heads);
        }
        f(cut, item - before, partials_before);
    });
}

Tile tile_of(const AttentionArgs& args, const Cut& cut, int64_t number) {
    const int64_t queries = (cut.last_row + 1 - cut.first_row) * (args.heads / args.kv_heads);
    const int64_t first = number % cut.tiles * cut.tile_queries;
    const int64_t count = queries - first < cut.tile_queries ? queries - first : cut.tile_queries;
    const int32_t* blocks = args.block_table + sequence_of(args, cut.first_row) * args.table_width;
    return {blocks, cut, number / cut.tiles, first, static_cast<int>(count)};
}

template <class Element>
void attend(const AttentionArgs& args, Worker& worker) {
    float* scratch = args.scratch + worker.id * args.scratch_per_thread;
    const AttentionPlan plan(args, worker.count);
    const int64_t partial_size =
        partial_floats(kSplitQueries, KvLayout{args.dtype, 1, args.head_dim}.padded_dim());
    const auto partial_at = [&](int64_t number, int queries) {
        return Partial(args.partials + number * partial_size, queries);
    };
    bool split = false;
    for (int64_t s = 0; s < plan.sequences(); ++s) split = split || plan.cut(s).split;

    const auto items = [&](const Cut& cut) { return cut.items(args.kv_heads); };
    take_items(args, worker, plan, items, [&](const Cut& cut, int64_t item, int64_t before) {
        const Tile tile = tile_of(args, cut, cut.split ? cut.tile_of(item) : item);
        TileRun<Element> run(args, tile, scratch);
        run.load_queries();
        if (!cut.split) return run.run();
        const Partial kept = partial_at(before + item, tile.queries);
        run.clear(kept, tile.queries);
        run.attend_partition(cut.first_partition + cut.partition_of(item),
                             [&](int, int count, Partial partial) { run.merge(kept, partial, count); });
    });
    if (!split) return;

    worker.barrier();
    const auto tiles = [&](const Cut& cut) { return cut.split ? args.kv_heads * cut.tiles : 0; };
    take_items(args, worker, plan, tiles, [&](const Cut& cut, int64_t item, int64_t before) {
        const Tile tile = tile_of(args, cut, item);
        const TileRun<Element> run(args, tile, scratch);
        const Partial first = partial_at(before + cut.item(item, 0), tile.queries);
        for (int64_t c = 1; c < cut.partitions; ++c)
            run.merge(first, partial_at(before + cut.item(item, c), tile.queries), tile.queries);
        run.write(0, tile.queries, first);
    });
}

void attention(const AttentionArgs& args, Worker& worker) {
    for_element(args.dtype, [&](auto element) { attend<decltype(element)>(args, worker); });
}

}  // namespace llmd::LLMD_ISA
