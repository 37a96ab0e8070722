// adapt: out[r] += (x[r] a^T) b^T * scale, for the rows of a step that have an adapter
//
//   x        [rows, width]         f32
//   a, b     [rank, width], [outputs, rank]  f32, f16 or bf16 (stored.cuh): of each adapter and output
//   middle   [items, ROWS, ranks]  f32: x a^T of the rows of each item
//   work     An item is up to ROWS rows with the same adapter, so that its matrices are read once for all of
//            them. adapt_middle: a block multiplies the rows of an item by RANKS rows of one a, each thread
//            every 256th column. adapt_outputs: a thread has an output of each row of an item
//   exact    Sums have an order that depends on the width and the rank only
//   speed    bound by latency for few rows
//   from     Chen et al. 2023, "Punica: Multi-Tenant LoRA Serving"
//
// Steps in which no row has an adapter do not run it.

#include "stored.cuh"

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / WARP;
constexpr int ROWS = 8;
constexpr int RANKS = 4;
constexpr int CHUNK = 64;  // elements of `middle` of a row that are in shared memory at once

// Rows with the same adapter: `count` of `Args.rows`, from `first` on. 0 rows: no such item.
struct Item {
    i32 adapter, first, count, unused;
};

// What an adapter adds to an output of the op.
struct Change {
    const void* a;
    const void* b;
    float* out;  // [rows, outputs]
    float scale;
    i32 a_format, b_format;  // FORMAT of stored.cuh
    i32 rank;                // 0: nothing
    i32 outputs;
    i32 first;  // where its part of a row of `middle` begins
};

struct Args {
    const Item* items;
    const i32* rows;        // those with adapters, by adapter
    const Change* changes;  // [adapters, values]
    const float* x;
    float* middle;
    i32 width;
    i32 values;
    i32 ranks;
};

// The change that a block works on, and the number of its piece of it. No such change: `value` is `values`.
struct Place {
    int value, piece;
};

// Blocks have `size` ranks each, or with OF_OUTPUTS outputs, of one change after the other.
template <bool OF_OUTPUTS>
DEVICE Place place_of(const Change* changes, int values, int block, int size) {
    Place place = {0, block};
    for (; place.value < values; ++place.value) {
        const Change& change = changes[place.value];
        const int of_change = change.rank ? (OF_OUTPUTS ? change.outputs : change.rank) : 0;
        const int pieces = (of_change + size - 1) / size;
        if (place.piece < pieces) break;
        place.piece -= pieces;
    }
    return place;
}

// Add up the products of a thread's columns; `a` begins with the first of `ranks` rows.
template <class Element>
DEVICE void add_columns(const Args& args, const Item& item, const Element* a, int ranks,
                        float (&sums)[RANKS][ROWS]) {
    int rows[ROWS];
#pragma unroll
    for (int n = 0; n < ROWS; ++n) rows[n] = args.rows[item.first + (n < item.count ? n : 0)];
    for (int column = thread_index(); column < args.width; column += THREADS) {
        float weights[RANKS];
#pragma unroll
        for (int k = 0; k < RANKS; ++k) {
            weights[k] = value_of(a[(i64)(k < ranks ? k : 0) * args.width + column]);
        }
#pragma unroll
        for (int n = 0; n < ROWS; ++n) {
            if (n >= item.count) break;
            const float x = args.x[(i64)rows[n] * args.width + column];
#pragma unroll
            for (int k = 0; k < RANKS; ++k) sums[k][n] = fmaf(weights[k], x, sums[k][n]);
        }
    }
}

// Grid x: RANKS ranks, grid y: items.
KERNEL BOUNDS(THREADS, 2) adapt_middle(const Args args) {
    SHARED float of_warps[WARPS][RANKS * ROWS];
    allow_next_kernel();
    wait_for_previous_kernel();
    const Item item = args.items[block_y()];
    if (item.count == 0) return;
    const Change* changes = args.changes + (i64)item.adapter * args.values;
    const Place place = place_of<false>(changes, args.values, block_x(), RANKS);
    if (place.value == args.values) return;
    const Change change = changes[place.value];
    const int first = place.piece * RANKS, ranks = change.rank - first;
    const i64 begin = (i64)first * args.width;

    float sums[RANKS][ROWS] = {};
    if (change.a_format == 0) {
        add_columns(args, item, (const float*)change.a + begin, ranks, sums);
    } else if (change.a_format == 1) {
        add_columns(args, item, (const Float16*)change.a + begin, ranks, sums);
    } else {
        add_columns(args, item, (const Bfloat16*)change.a + begin, ranks, sums);
    }
#pragma unroll
    for (int k = 0; k < RANKS; ++k) {
#pragma unroll
        for (int n = 0; n < ROWS; ++n) {
            const float sum = warp_sum(sums[k][n]);
            if (lane_index() == 0) of_warps[warp_index()][k * ROWS + n] = sum;
        }
    }
    block_barrier();
    const int k = thread_index() / ROWS, n = thread_index() % ROWS;
    if (k >= RANKS || k >= ranks || n >= item.count) return;
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) total += of_warps[warp][k * ROWS + n];
    args.middle[((i64)block_y() * ROWS + n) * args.ranks + change.first + first + k] = total;
}

// Add up the products of an output; `b` begins with the first of `ranks` elements.
template <class Element>
DEVICE void add_ranks(const float (&middle)[CHUNK][ROWS], const Element* b, int ranks, float (&sums)[ROWS]) {
    for (int k = 0; k < ranks; ++k) {
        const float weight = value_of(b[k]);
#pragma unroll
        for (int n = 0; n < ROWS; ++n) sums[n] = fmaf(middle[k][n], weight, sums[n]);
    }
}

// Grid x: THREADS outputs, grid y: items.
KERNEL BOUNDS(THREADS, 2) adapt_outputs(const Args args) {
    SHARED float middle[CHUNK][ROWS];
    allow_next_kernel();
    wait_for_previous_kernel();
    const Item item = args.items[block_y()];
    if (item.count == 0) return;
    const Change* changes = args.changes + (i64)item.adapter * args.values;
    const Place place = place_of<true>(changes, args.values, block_x(), THREADS);
    if (place.value == args.values) return;
    const Change change = changes[place.value];
    const int output = place.piece * THREADS + thread_index();
    const bool exists = output < change.outputs;

    float sums[ROWS] = {};
    for (int first = 0; first < change.rank; first += CHUNK) {
        const int ranks = change.rank - first < CHUNK ? change.rank - first : CHUNK;
        const i64 begin = (i64)(exists ? output : 0) * change.rank + first;
        block_barrier();
        for (int i = thread_index(); i < ranks * ROWS; i += THREADS) {
            const i64 row = (i64)block_y() * ROWS + i % ROWS;
            const bool is_row = i % ROWS < item.count;
            middle[i / ROWS][i % ROWS] =
                is_row ? args.middle[row * args.ranks + change.first + first + i / ROWS] : 0.0f;
        }
        block_barrier();
        if (change.b_format == 0) {
            add_ranks(middle, (const float*)change.b + begin, ranks, sums);
        } else if (change.b_format == 1) {
            add_ranks(middle, (const Float16*)change.b + begin, ranks, sums);
        } else {
            add_ranks(middle, (const Bfloat16*)change.b + begin, ranks, sums);
        }
    }
    if (!exists) return;
#pragma unroll
    for (int n = 0; n < ROWS; ++n) {
        if (n >= item.count) break;
        float* out = change.out + (i64)args.rows[item.first + n] * change.outputs + output;
        *out = fmaf(sums[n], change.scale, *out);
    }
}
