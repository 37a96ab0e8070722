// What a block of attention computes, its queries, and its sums so far; attention.cu says what tiles and
// spans are.
//
// Macros: those of kv_layout.cuh; RATIO, query heads of a key-value head; SOFTCAP, 1 if there is one; SUMS, 1
// if another op reads the sums of exponentials.
#pragma once

#include "kv_layout.cuh"

#ifndef RATIO
#define RATIO 4
#endif
#ifndef SOFTCAP
#define SOFTCAP 0
#endif
#ifndef SUMS
#define SUMS 0
#endif

constexpr int WARPS = DIM <= 256 ? 4 : 8;  // so that each has registers for the sums of its dimensions
constexpr int THREADS = WARPS * WARP;
constexpr int RESIDENT = DIM <= 256 ? 2 : 1;  // blocks that a processor has registers for
constexpr int PAIRS = 16;                     // of a split tile: rows of a multiply_tile
constexpr int HEADS = RATIO < PAIRS ? RATIO : PAIRS;
constexpr int HEAD_TILES = (RATIO + PAIRS - 1) / PAIRS;
constexpr int CHUNK_BLOCKS = 8;
constexpr int CHUNK = CHUNK_BLOCKS * BLOCK_LEN;
constexpr int OWN_BLOCKS = CHUNK_BLOCKS / WARPS;  // blocks of a chunk for which a warp computes scores
constexpr int STEPS = DIM / 16;                   // of a product with keys
// Groups of 16 dimensions that a warp sums up.
constexpr int UNITS = PADDED_VALUE_DIM <= 64 ? 1 : (PADDED_VALUE_DIM + 32 * WARPS - 1) / (32 * WARPS) * 2;
constexpr int GROUP = UNITS < 2 ? 1 : 2;  // of them at a time: their values share a scale

// What a block computes, as the host describes it.
struct Item {
    i32 row, num_rows;  // rows of the step
    i32 sequence;
    i32 position;  // of the first row; with CHOSEN, its last place in the list of chosen positions, or -1
    i32 first_span, num_spans;
    i32 first_place;  // in `sums`, in pairs
    i32 span;         // of a split tile
    i32 column;       // the key-value head, and which of its head tiles; not from the host
};

struct Args {
    KVMemory memory;
    const i32* plan;  // items of split tiles, all items, 0...; the items, first those of split tiles
    const float* q;
    float* out;
    float* sums;         // [place, column, PADDED_VALUE_DIM]; a column is a key-value head and a head tile
    float* stats;        // [place, column, 2]: a Total
    i32* arrived;        // [first place / HEADS, column]: items of the tile that are done; 0 between launches
    const float* sinks;  // [heads]; null: there are none
    float score_scale;   // of products: with SOFTCAP, to the argument of tanh; else not used
    float exponent_scale;  // of scores, to exponents of 2; above 0
    i32 window;
    i32 most_items;       // that fit into the plan
    const float* chosen;  // [rows, top_k], with CHOSEN: the positions that each row sees
    i32 top_k;
    float* log_sums;  // [rows, heads], with SUMS: the logarithms of the sums of exponentials
};

// What exponentials are relative to, as an exponent of 2 (-infinity: there are none), and their sum.
struct alignas(8) Total {
    float reference, sum;
};
// Factors of the sums so far, and of those that are added.
struct alignas(8) Factors {
    float old_factor, new_factor;
};

template <int tiles>
struct Shared {
    Words4 queries[tiles][STEPS][WARP];         // `a` words
    Words4 weights[tiles][CHUNK_BLOCKS][WARP];  // exponentials of a chunk, `a` words
    float largest[2][WARPS][tiles * PAIRS];  // score of a warp; chunks take turns, as others may still read
    float totals[CHUNK_BLOCKS][tiles * PAIRS];  // sums of exponentials
    Total so_far[WARPS][tiles * PAIRS];         // of the exponentials of a pair; each warp has its own copy
    Factors factors[WARPS][tiles * PAIRS];      // with which the sums of this chunk are added
    Total in_out[WARPS][tiles * PAIRS];         // of the spans whose sums are in `out`
    i64 places[2][SCATTERED ? CHUNK : 1];       // of the vectors of a chunk; chunks take turns
    Item item;
    i32 is_last;
};

// The keys and values of an item. Everything else is read from shared memory when it is needed: there are few
// registers.
struct Work {
    const u8* head;               // in block 0
    const i32* table;             // of the sequence
    int first_block, last_block;  // that a row sees
    const float* chosen;          // of the row
    int last;                     // that a row sees, of the vectors or of the chosen positions; -1: none
};

// The last vector that a row of an item at a position sees, or its place in the list; -1: none.
DEVICE int last_seen(int position, int row) { return CHOSEN ? position : last_vector(position + row); }

DEVICE int kv_head(const Item& item) { return item.column / HEAD_TILES; }
// The query head of a pair, among those of its key-value head.
DEVICE int head_of_pair(const Item& item, int pair) {
    return item.column % HEAD_TILES * PAIRS + pair % HEADS;
}
DEVICE bool exists(const Item& item, int pair) {
    return pair < item.num_rows * HEADS && (RATIO % HEADS == 0 || head_of_pair(item, pair) < RATIO);
}
// The number of the head of a pair among those of all rows, in q and out.
DEVICE i64 place_of(const Args& args, const Item& item, int pair) {
    const i64 first = (i64)(item.row + pair / HEADS) * args.memory.kv_heads + kv_head(item);
    return first * RATIO + head_of_pair(item, pair);
}

DEVICE Item read_item(const i32* plan, int number, int column) {
    const Words4* from = (const Words4*)(plan + 8 + 8 * number);
    const Words4 a = from[0], b = from[1];
    return {(i32)a.x, (i32)a.y, (i32)a.z, (i32)a.w, (i32)b.x, (i32)b.y, (i32)b.z, (i32)b.w, column};
}

DEVICE Work begin_work(const Args& args, const Item& item) {
    const int first = item.position - args.window + 1, last = last_seen(item.position, item.num_rows - 1);
    return {head_of(args.memory, kv_head(item)),
            blocks_of(args.memory.block_table, item.sequence),
            first > 0 ? first / BLOCK_LEN : 0,
            last / BLOCK_LEN,
            CHOSEN ? args.chosen + (i64)item.row * args.top_k : nullptr,
            last};
}

// Two neighbouring elements of a query; zeros if there is no query, and beyond the head.
DEVICE Words2 read_two(const float* query, int dim) {
    if (!query || dim >= HEAD_DIM) return Words2{0, 0};
#if HEAD_DIM % 2 == 0
    return *(const Words2*)(query + dim);
#else
    return Words2{bits_of(query[dim]), dim + 1 < HEAD_DIM ? bits_of(query[dim + 1]) : 0};
#endif
}
DEVICE half2 to_half2(const Words2& two) { return to_half2(float_of(two.x), float_of(two.y)); }

// Leave queries in shared memory. A lane reads those of the pairs lane / 4 and lane / 4 + 8 of each tile.
template <int tiles>
DEVICE void load_queries(const Args& args, const Item& item, Shared<tiles>& shared) {
    constexpr int OWN_STEPS = (STEPS + WARPS - 1) / WARPS;
    const int lane = lane_index();
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
        const int pair = tile * PAIRS + lane / 4;
        const float* first = exists(item, pair) ? args.q + place_of(args, item, pair) * HEAD_DIM : nullptr;
        const float* second =
            exists(item, pair + 8) ? args.q + place_of(args, item, pair + 8) * HEAD_DIM : nullptr;
        Words2 read[OWN_STEPS][4];
#pragma unroll
        for (int n = 0; n < OWN_STEPS; ++n) {
            const int step = n * WARPS + warp_index(), dim = step / 2 * SLAB + lane % 4 * 8 + step % 2 * 4;
            read[n][0] = read_two(first, dim), read[n][1] = read_two(second, dim);
            read[n][2] = read_two(first, dim + 2), read[n][3] = read_two(second, dim + 2);
        }
#pragma unroll
        for (int n = 0; n < OWN_STEPS; ++n) {
            const int step = n * WARPS + warp_index();
            const Words4 words = {to_half2(read[n][0]), to_half2(read[n][1]), to_half2(read[n][2]),
                                  to_half2(read[n][3])};
            if (step < STEPS) shared.queries[tile][step][lane] = words;
        }
    }
}

// Sums over positions for the 16 pairs of each tile. A lane has the pairs lane / 4 and lane / 4 + 8; of each
// unit, the dimensions 16i + 4t + j at [j][0] and 16i + 4t + 2 + j at [j][1] for the first pair, at [j][2]
// and [j][3] for the other.
template <int tiles>
struct State {
    float sums[tiles][UNITS][2][4];
};

template <int tiles>
DEVICE void clear(State<tiles>& state, Shared<tiles>& shared) {
#pragma unroll
    for (int n = 0; n < tiles * UNITS * 8; ++n) {
        state.sums[n / 8 / UNITS][n / 8 % UNITS][n / 4 % 2][n % 4] = 0.0f;
    }
    for (int pair = lane_index(); pair < tiles * PAIRS; pair += WARP) {
        shared.so_far[warp_index()][pair] = Total{-infinity(), 0.0f};
    }
    warp_barrier();
}

// The factors for sums of two sets of exponentials, each relative to its own reference. The sum is relative
// to the larger.
DEVICE Factors factors_of(float old_reference, float new_reference) {
    const float reference = fmaxf(old_reference, new_reference);
    const float finite = reference == -infinity() ? 0.0f : reference;
    return {fast_exp2(old_reference - finite), fast_exp2(new_reference - finite)};
}
// The sink of a pair's head; -infinity if there is none.
DEVICE float sink_of(const Args& args, const Item& item, int pair) {
    return args.sinks ? args.sinks[kv_head(item) * RATIO + head_of_pair(item, pair)] : -infinity();
}
// The sum of all exponentials of a pair, to which that of its head's sink belongs.
DEVICE float sum_with_sink(const Args& args, const Item& item, int pair, const Total& total) {
    constexpr float LOG2_E = 1.44269504f;
    if (!args.sinks) return total.sum;
    return total.sum + fast_exp2(sink_of(args, item, pair) * LOG2_E - total.reference);
}
// Whether there are exponentials. A row may see no vector that stands for several positions.
DEVICE bool is_empty(const Total& total) { return STRIDE > 1 && total.reference == -infinity(); }
// What the sums of a pair are multiplied by in the end.
DEVICE float last_factor(const Args& args, const Item& item, int pair, const Total& total) {
    return is_empty(total) ? 0.0f : 1.0f / sum_with_sink(args, item, pair, total);
}
// Write the logarithm of that sum. If it is infinite, the sink is so large that nothing else counts.
DEVICE void leave_log_sum(const Args& args, const Item& item, int pair, const Total& total) {
    constexpr float LN_2 = 0.693147181f;
    const float sum = is_empty(total) ? infinity() : sum_with_sink(args, item, pair, total);
    args.log_sums[place_of(args, item, pair)] =
        sum == infinity() ? sink_of(args, item, pair) : fmaf(total.reference, LN_2, logf(sum));
}
// As it is written, the compiler cannot choose how this is rounded.
DEVICE float folded(float old_sum, float new_sum, const Factors& by) {
    return fmaf(new_sum, by.new_factor, old_sum * by.old_factor);
}
DEVICE Total folded(const Total& old_total, const Total& new_total, const Factors& by) {
    return {fmaxf(old_total.reference, new_total.reference), folded(old_total.sum, new_total.sum, by)};
}

// Return where each block of a chunk is, one in each lane. Instead of a block that no row sees, the nearest
// one that is seen is read: its scores are masked. If vectors are SCATTERED, a thread has one of the chunk:
// VECTORS times its block, plus its number there; if no row sees any, that of the first one of block 0.
DEVICE int read_ids(const Work& work, int chunk) {
    if (SCATTERED) {
        if (STRIDE > 1 && work.last < 0) return 0;
        int number = min(chunk * CHUNK + thread_index() % CHUNK, work.last);
        if (CHOSEN) number = (int)work.chosen[number];
        return work.table[number / VECTORS] * VECTORS + number % VECTORS;
    }
    const int block = chunk * CHUNK_BLOCKS + lane_index() % CHUNK_BLOCKS;
    if (block < work.first_block) return work.table[work.first_block];
    return work.table[block < work.last_block ? block : work.last_block];
}
// Bytes between block 0 and the block that is number `place` in the chunk.
DEVICE i64 block_at(const Args& args, int ids, int place) {
    return (i64)shuffle(ids, place) * (i32)args.memory.block_bytes;  // of 32 bits: one instruction
}
// Leave the places of the vectors of a chunk in shared memory.
template <int tiles>
DEVICE void leave_places(const Args& args, Shared<tiles>& shared, int chunk, int id) {
    const i64 at = (i64)(id / VECTORS) * (i32)args.memory.block_bytes;
    shared.places[chunk % 2][thread_index() % CHUNK] = at + key_index(id % VECTORS, 0) * 2;
    block_barrier();
}
