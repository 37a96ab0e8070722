// attention: out[r] = sum over t of weight[t] v[t],   weight = softmax over t of softcap(q[r] . k[t] * scale)
//
//   sinks   the sum of the softmax of head h also contains exp(sinks[h]), if there are sinks
//   t       the positions that row r sees: from its own back to position 0, or over `window` positions
//   q, out  [rows, heads, HEAD_DIM or VALUE_DIM]  f32; queries and exponentials are rounded to float16 when
//   they are
//           multiplied, the sums of products and of exponentials are float32
//   k, v    in the KV memory (kv_layout.cuh), read as float16; the rows of this step are stored before. With
//           int4, queries come rotated, and results are rotated back
//   tiles   the host cuts the rows of each sequence into tiles (attention_plan.py). Up to 16 pairs of a row
//           and one of the HEADS query heads of a key-value head are the rows of one multiply_tile
//   chunks  positions are cut into chunks of CHUNK. Within a chunk, exponentials are relative to its largest
//           score. Chunks are cut into spans: one chunk each at first, LONG_CHUNKS chunks from position
//           SHORT_SPANS * CHUNK on. The sums of the chunks of a span are added in order, then those of the
//           spans
//   work    a block computes an item for one key-value head (and 16 of its query heads if it has more):
//           - attention_split: a tile of up to 16 pairs, and one of its spans. The block that is the last of
//             its tile adds up the spans, which the others have left in `sums` and `stats`. For few rows
//           - attention_whole: a tile of up to 16 * TILES pairs, and all its spans. For many rows
//           Both give the same bits. Warps share the 8 blocks of a chunk for the scores, and the dimensions
//           for the sums of values: how they do that does not change any sum
//   chosen  with CHOSEN, t are the positions in the list of the row, and chunks and spans are counted along
//   it;
//           a tile has one row. As long as all positions are chosen, the bits are those without a list
//   stride  with a STRIDE, t are vectors that stand for several positions, and a row sees those that it or
//           rows before it complete. A row that sees none is 0
//   sums    with SUMS, the logarithms of the sums of exponentials go to `log_sums`; -infinity of nothing
//   exact   every sum depends on positions only, and a position that a row does not see adds nothing to it
//   speed   split tiles: bound by latency, then by reading keys and values, each once; all loads of a chunk
//           are in flight at once. Whole tiles: bound by tensor cores, shared memory and the L2 cache, about
//           equally
//   from    Dao 2023, "FlashAttention-2"; Dao et al. 2023, "Flash-Decoding"; Milakov & Gimelshein 2018,
//           "Online normalizer calculation for softmax"
//
// Macros: those of attention_item.cuh; TILES, SHORT_SPANS and LONG_CHUNKS.
#include "attention_chunk.cuh"
#include "kv_hadamard.cuh"

#ifndef TILES
#define TILES 4
#endif
#ifndef SHORT_SPANS
#define SHORT_SPANS 16
#define LONG_CHUNKS 4
#endif

DEVICE int first_chunk(int span) {
    return span < SHORT_SPANS ? span : SHORT_SPANS + (span - SHORT_SPANS) * LONG_CHUNKS;
}

// The first chunk of a span that a row of the tile sees.
DEVICE int first_seen(const Work& work, int span) {
    const int first = first_chunk(span), seen = work.first_block / CHUNK_BLOCKS;
    return first > seen ? first : seen;
}

// Attend to the chunks of a span that a row of the tile sees. `ids` are those of the first of them, then of
// the next.
template <int tiles>
DEVICE void attend_span(State<tiles>& state, const Args& args, const Work& work, Shared<tiles>& shared,
                        int span, int& ids, bool is_first) {
    const int end = first_chunk(span + 1), end_seen = work.last_block / CHUNK_BLOCKS + 1;
    for (int chunk = first_seen(work, span); chunk < end && chunk < end_seen; ++chunk) {
        const int next_ids = read_ids(work, chunk + 1);
        attend_chunk(state, args, work, shared, chunk, ids, is_first);
        ids = next_ids;
        is_first = false;
    }
}

// Where the sums of a pair and span of a tile are in `sums` and `stats`.
DEVICE i64 entry_of(const Args& args, const Item& item, int span, int pair) {
    const int place = item.first_place + (span - item.first_span) * item.num_rows * HEADS + pair;
    return (i64)place * (args.memory.kv_heads * HEAD_TILES) + item.column;
}

// Leave the sums of a span for the block that adds them up.
DEVICE void leave_sums(const State<1>& state, const Args& args, const Shared<1>& shared) {
    const Item& item = shared.item;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int pair = lane_index() / 4 + 8 * half;
        if (pair >= item.num_rows * HEADS) continue;
        const i64 entry = entry_of(args, item, item.span, pair);
#pragma unroll
        for (int n = 0; n < UNITS; ++n) {
            const int dim = first_dim(n);
            const Four four = sums_of(state.sums[0][n], half);
            const Words4 words = {bits_of(four.at[0]), bits_of(four.at[1]), bits_of(four.at[2]),
                                  bits_of(four.at[3])};
            if (dim < PADDED_VALUE_DIM) *(Words4*)(args.sums + entry * PADDED_VALUE_DIM + dim) = words;
        }
        if (lane_index() % 4 == 0 && warp_index() == 0) {
            args.stats[2 * entry] = shared.so_far[0][pair].reference;
            args.stats[2 * entry + 1] = shared.so_far[0][pair].sum;
        }
    }
}

// Whether this block is the last one of its tile to leave sums; those of the others are visible then.
DEVICE bool is_last_block(const Args& args, Shared<1>& shared) {
    global_fence();
    block_barrier();
    if (thread_index() == 0) {
        const Item& item = shared.item;
        i32* arrived = args.arrived + (i64)(item.first_place / HEADS) * (args.memory.kv_heads * HEAD_TILES) +
                       item.column;
        shared.is_last = atomic_add(arrived, 1) == item.num_spans - 1;
        if (shared.is_last) *arrived = 0;
    }
    block_barrier();
    global_fence();
    return shared.is_last;
}

// Add the sums of all spans of a tile in order, and write the means to `out`. Each warp takes a pair at a
// time: for the totals a lane has a span, for the sums it has every 32nd dimension. Other blocks have written
// what is read here, so that it must not come from a cache of this multiprocessor: hence volatile.
DEVICE void add_spans(const Args& args, const Item& item) {
    constexpr int AT_ONCE = 8;  // spans that are read at once
    const int lane = lane_index();
    const i64 step = entry_of(args, item, item.first_span + 1, 0) - entry_of(args, item, item.first_span, 0);
    for (int pair = warp_index(); pair < item.num_rows * HEADS; pair += WARPS) {
        Total so_far = {-infinity(), 0.0f};
        float sums[VALUE_SLABS] = {};
        for (int first = 0; first < item.num_spans; first += WARP) {
            const int count = item.num_spans - first < WARP ? item.num_spans - first : WARP;
            const i64 entry = entry_of(args, item, item.first_span + first, pair);
            Total own = {-infinity(), 0.0f};
            if (lane < count) {
                const volatile float* stats = args.stats + 2 * (entry + lane * step);
                own = {stats[0], stats[1]};
            }
            Factors by;
            float largest;
            for (int span = 0; span < count; span += AT_ONCE) {
                float read[AT_ONCE][VALUE_SLABS];
#pragma unroll
                for (int n = 0; n < AT_ONCE; ++n) {
                    const volatile float* from =
                        args.sums + (entry + (span + n) * step) * PADDED_VALUE_DIM + lane;
#pragma unroll
                    for (int s = 0; s < VALUE_SLABS; ++s)
                        read[n][s] = span + n < count ? from[s * WARP] : 0.0f;
                }
                if (span == 0) {  // now that all are being read
                    largest = fmaxf(own.reference, so_far.reference);
                    for (int lanes = 1; lanes < WARP; lanes *= 2)
                        largest = fmaxf(largest, shuffle_up(largest, lanes));
                    const float before = shuffle_up(largest, 1);
                    by = factors_of(lane > 0 ? before : so_far.reference, own.reference);
                }
#pragma unroll
                for (int n = 0; n < AT_ONCE; ++n) {
                    if (span + n >= count) break;
                    const Factors of_span = {shuffle(by.old_factor, span + n),
                                             shuffle(by.new_factor, span + n)};
                    so_far.sum = folded(so_far.sum, shuffle(own.sum, span + n), of_span);
#pragma unroll
                    for (int s = 0; s < VALUE_SLABS; ++s) sums[s] = folded(sums[s], read[n][s], of_span);
                }
            }
            so_far.reference = shuffle(largest, WARP - 1);
        }
        if (!exists(item, pair)) continue;
        const float factor = last_factor(args, item, pair, so_far);
        if (SUMS && lane == 0) leave_log_sum(args, item, pair, so_far);
        float* head = args.out + place_of(args, item, pair) * VALUE_DIM;
        for (int s = 0; s < VALUE_SLABS; ++s) sums[s] *= factor;
        if (ROTATED) rotate_head(sums);
#pragma unroll
        for (int s = 0; s < VALUE_SLABS; ++s) {
            if (s * WARP + lane < VALUE_DIM) head[s * WARP + lane] = sums[s];
        }
    }
}

// Rotate the means of a tile that this block has written to `out`.
DEVICE void rotate_out(const Args& args, const Item& item) {
    block_barrier();
    for (int pair = warp_index(); pair < item.num_rows * HEADS; pair += WARPS) {
        if (!exists(item, pair)) continue;
        float* head = args.out + place_of(args, item, pair) * VALUE_DIM + lane_index();
        float means[SLABS];
#pragma unroll
        for (int s = 0; s < SLABS; ++s) {
            means[s] = s * WARP + lane_index() < HEAD_DIM ? head[s * WARP] : 0.0f;
        }
        rotate_head(means);
#pragma unroll
        for (int s = 0; s < SLABS; ++s) {
            if (s * WARP + lane_index() < HEAD_DIM) head[s * WARP] = means[s];
        }
    }
}

// Find where the blocks of the first chunk of a split tile's span are.
DEVICE void begin_split(const Args& args, const Item& item, Work& work, int& ids) {
    work = begin_work(args, item);
    ids = read_ids(work, first_seen(work, item.span));
}

KERNEL BOUNDS(THREADS, RESIDENT) attention_split(Args args) {
    SHARED Shared<1> shared;
    allow_next_kernel();
    int number = block_x();
    Item item = {};
    if (number < args.most_items) {  // it may not exist: the count is read at the same time
        item = read_item(args.plan, number, block_y());
    }
    const int end = args.plan[0];
    Work work = {};
    int ids = 0;
    if (CHOSEN) wait_for_previous_kernel();  // which has written the positions
    if (number < end) begin_split(args, item, work, ids);
    if (!CHOSEN) wait_for_previous_kernel();
    while (number < end) {
        shared.item = item;
        State<1> state;
        clear(state, shared);
        attend_span(state, args, work, shared, item.span, ids, true);
        if (shared.item.num_spans == 1) {
            add_to_out(state, args, shared, true, true);
            if (ROTATED) rotate_out(args, shared.item);
        } else {
            leave_sums(state, args, shared);
            if (is_last_block(args, shared)) add_spans(args, shared.item);
        }
        number += grid_x();
        if (number >= end) return;
        item = read_item(args.plan, number, block_y());
        begin_split(args, item, work, ids);
        block_barrier();  // the shared memory is not in use any more
    }
}

// As long as a span is one chunk, the sums of the spans stay in registers. Those of longer spans are added to
// sums in `out`. There is a block for each tile that a step may have: tiles begin in order, and the longest
// are the first.
KERNEL BOUNDS(THREADS, RESIDENT) attention_whole(Args args) {
    SHARED Shared<TILES> shared;
    allow_next_kernel();
    const int number = args.plan[0] + block_y();
    const bool has_tile = number < args.plan[1];
    Work work = {};
    int ids = 0;
    if (CHOSEN) wait_for_previous_kernel();
    if (has_tile) {
        shared.item = read_item(args.plan, number, block_x());
        work = begin_work(args, shared.item);
        ids = read_ids(work, first_seen(work, shared.item.first_span));
    }
    if (!CHOSEN) wait_for_previous_kernel();  // also in blocks without a tile, which may be all
    if (!has_tile) return;
    State<TILES> state;
    clear(state, shared);
    bool is_first = true;
    const int first = shared.item.first_span, end = first + shared.item.num_spans;
    for (int span = first; span < end; ++span) {
        attend_span(state, args, work, shared, span, ids, span == first);
        const bool is_last = span + 1 == end, next_is_long = LONG_CHUNKS > 1 && span + 1 >= SHORT_SPANS;
        if (!is_last && !next_is_long) continue;
        add_to_out(state, args, shared, is_first, is_last);
        is_first = false;
    }
    if (ROTATED) rotate_out(args, shared.item);
}
