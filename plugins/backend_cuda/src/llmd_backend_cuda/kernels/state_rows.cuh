// Layers with a matrix for each head that every row of a sequence changes: S = decay S + k change, out = q S.
// A rule (gated_delta.cu, state_space.cu) says what a row is turned into, and how it changes S.
//
//   S       [key_dim, value_dim] of a head, f32
//   q, k    [rows, key_heads * KEY_DIM]  f32
//   v, out  [rows, heads * value_dim]    f32
//   states  [slots, layers, state]  f32; a state is the TAPS - 1 rows before the next one, [row][q, k and v],
//           then S of each head
//   table   the block table [sequences, 2]: the slot that a sequence starts from (-1: zeros), and the slot to
//           write
//   work    prepare_rows: a block has a row and a head of q, k or v; it convolves the head, and one of v also
//           makes its decays and share. run_rows: a block has a sequence and 32 columns of a head's S, which
//           stay in registers while all rows of the sequence change them. Four lanes share a column: of each
//           16 rows of S, a lane has four
//   exact   all sums have an order that does not depend on the rows of the step
//   speed   run_rows reads and writes S once a step; for prompts it is bound by the latency of a row
//
// Macros: KEY_DIM; BY_ELEMENT, 1 if each element of a key has a decay, else each head.
#pragma once

#include "activations.cuh"
#include "step.cuh"

#ifndef KEY_DIM
#define KEY_DIM 128
#endif
#ifndef BY_ELEMENT
#define BY_ELEMENT 0
#endif

constexpr int THREADS = 128;
constexpr int PARTS = 4;                  // lanes that share a column
constexpr int COLUMNS = THREADS / PARTS;  // of a block
constexpr int PADDED = (KEY_DIM + 4 * PARTS - 1) / (4 * PARTS) * (4 * PARTS);
constexpr int OWN = PADDED / PARTS;                      // rows of S of a thread
constexpr int LOADS = (PADDED + THREADS - 1) / THREADS;  // elements of q and k that a thread copies
constexpr int DECAYS = BY_ELEMENT ? KEY_DIM : 1;         // of a head

struct Args {
    Step step;
    const float* inputs[3];  // q, k, v
    const float* decay;      // [rows, heads * DECAYS]
    const float* beta;       // [rows, heads], of the gated delta rule
    const float* taps[3];    // [columns, taps], the last tap for the row itself
    const float* shifts[3];  // [columns]: added to the convolution; null: zeros
    const float* rates;      // [heads]
    const float* bias;       // [heads * DECAYS]
    const float* skips;      // [heads], of the state space
    float* mixed;            // [rows, width]: what q, k and v are turned into
    float* decays;           // [rows, heads * DECAYS]: factors of S
    float* shares;           // [rows, heads]: how much of a value is written
    float* out;
    float* states;
    const i32* table;  // see blocks_of
    i32 layers;
    i32 layer;
    i32 heads;
    i32 key_heads;
    i32 value_dim;
    i32 num_taps;
    i32 rates_are_logs;
    i32 is_tiled;      // head h uses key head h % key_heads; else h / (heads / key_heads)
    float least_time;  // of the state space
    float most_time;   // infinity: none
};

DEVICE int key_width(const Args& args) { return args.key_heads * KEY_DIM; }
DEVICE int value_width(const Args& args) { return args.heads * args.value_dim; }
DEVICE int row_width(const Args& args) { return 2 * key_width(args) + value_width(args); }
DEVICE i64 kept_size(const Args& args) { return (i64)(args.num_taps - 1) * row_width(args); }
DEVICE float* state_at(const Args& args, int slot) {
    const i64 size = kept_size(args) + (i64)value_width(args) * KEY_DIM;
    return args.states + ((i64)slot * args.layers + args.layer) * size;
}

// A head of q, k or v.
struct Head {
    int input;   // 0, 1 or 2
    int number;  // among those of the input
    int dim;
    int width;  // of a row of the input
    int first;  // column of the row's q, k and v
};

DEVICE Head head_of_block(const Args& args) {
    const int number = block_x(), keys = args.key_heads;
    if (number >= 2 * keys) {
        const int own = number - 2 * keys;
        return {2, own, args.value_dim, value_width(args), 2 * key_width(args) + own * args.value_dim};
    }
    const int input = number / keys, own = number % keys;
    return {input, own, KEY_DIM, key_width(args), number * KEY_DIM};
}

DEVICE float rate_of(const Args& args, int head) {
    const float stored = args.rates[head];
    return args.rates_are_logs ? expf(stored) : -stored;
}

// An element of a head: silu of its weighted sum over the row and those before it. `number` is that of the
// row in its sequence and step, `kept` are the rows before; null: zeros.
DEVICE float convolve(const Args& args, const Head& head, int row, int number, const float* kept, int i) {
    const int column = head.number * head.dim + i;
    const float* x = args.inputs[head.input] + column;
    const float* taps = args.taps[head.input] + (i64)column * args.num_taps;
    float sum = args.shifts[head.input] ? args.shifts[head.input][column] : 0.0f;
    for (int tap = 0; tap < args.num_taps; ++tap) {
        const int back = args.num_taps - 1 - tap;
        float value = 0.0f;
        if (back <= number) {
            value = x[(i64)(row - back) * head.width];
        } else if (kept) {
            value = kept[(i64)(number + tap) * row_width(args) + head.first + i];
        }
        sum = fmaf(taps[tap], value, sum);
    }
    return activate(SILU, sum, 0.0f);
}

// Turn a row into what changes S; see prepare_rows. Grid x: the heads of q, then of k, then of v; grid y: a
// row.
template <class Rule>
DEVICE void prepare(const Args& args, float (&sums)[THREADS / WARP]) {
    allow_next_kernel();
    wait_for_previous_kernel();
    const int row = block_y();
    if (row >= args.step.counts[0]) return;
    const Head head = head_of_block(args);
    const int sequence = args.step.sequences[row], number = row - args.step.row_offsets[sequence];
    const int from = blocks_of(args.table, sequence)[0];
    const float* kept = from < 0 ? nullptr : state_at(args, from);
    float* mixed = args.mixed + (i64)row * row_width(args) + head.first;
    float squares = 0.0f;
    for (int i = thread_index(); i < head.dim; i += THREADS) {
        mixed[i] = convolve(args, head, row, number, kept, i);
        squares += mixed[i] * mixed[i];
    }
    if (head.input == 2) {
        Rule::weigh_head(args, row, head.number);
        return;
    }
    if (!Rule::NORMALISED) return;
    const float length = head.input == 0 ? sqrtf((float)KEY_DIM) : 1.0f;
    const float factor = 1.0f / (sqrtf(block_sum(squares, sums) + 1e-6f) * length);
    for (int i = thread_index(); i < head.dim; i += THREADS) mixed[i] *= factor;
}

// What a row does to a head, in shared memory; zeros follow the last element.
struct alignas(16) Row {
    float q[PADDED], k[PADDED], decays[BY_ELEMENT ? PADDED : 4];
};
// What a thread copies of it.
struct OwnRow {
    float q[LOADS], k[LOADS], decays[LOADS], share, value;
};

// The head and the columns of a block.
struct Work {
    int head, key_head;
    int part;    // of the rows of S
    int column;  // of S
};

DEVICE OwnRow read_row(const Args& args, const Work& work, int row) {
    const float* mixed = args.mixed + (i64)row * row_width(args) + work.key_head * KEY_DIM;
    const float* decays = args.decays + ((i64)row * args.heads + work.head) * DECAYS;
    OwnRow own = {};
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int i = n * THREADS + thread_index();
        if (i < KEY_DIM) own.q[n] = mixed[i], own.k[n] = mixed[key_width(args) + i];
        if (i < DECAYS) own.decays[n] = decays[i];
    }
    own.share = args.shares[(i64)row * args.heads + work.head];
    if (work.column < args.value_dim) {
        const i64 first = (i64)row * row_width(args) + 2 * key_width(args);
        own.value = args.mixed[first + work.head * args.value_dim + work.column];
    }
    return own;
}

DEVICE void share_row(Row& shared, const OwnRow& own) {
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int i = n * THREADS + thread_index();
        if (i < PADDED) shared.q[i] = own.q[n], shared.k[i] = own.k[n];
        if (i < (BY_ELEMENT ? PADDED : 1)) shared.decays[i] = own.decays[n];
    }
}

// The row of S that is number `n` of a thread.
DEVICE int key_of(int n, int part) { return n / 4 * (4 * PARTS) + part * 4 + n % 4; }

DEVICE float sum_of_parts(float value) {
    value += shuffle_xor(value, WARP / PARTS);
    return value + shuffle_xor(value, WARP / PARTS * 2);
}

// Change the state by a row; return the element of the result that belongs to the column.
template <class Rule>
DEVICE float run_row(float (&state)[OWN], const Row& row, const OwnRow& own, int part) {
    float found = 0.0f, out = 0.0f;
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        const int key = key_of(n, part);
        state[n] *= row.decays[BY_ELEMENT ? key : 0];
        if (Rule::CORRECTS) found = fmaf(row.k[key], state[n], found);
    }
    const float change = (Rule::CORRECTS ? own.value - sum_of_parts(found) : own.value) * own.share;
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        const int key = key_of(n, part);
        state[n] = fmaf(row.k[key], change, state[n]);
        out = fmaf(row.q[key], state[n], out);
    }
    return sum_of_parts(out);
}

// Write the rows that the convolutions of the next step need: all blocks of a sequence share its columns.
DEVICE void keep_rows(const Args& args, int first_row, int rows, const float* kept, float* to, int block,
                      int num_blocks) {
    const int width = row_width(args), keys = key_width(args);
    for (int column = block * THREADS + thread_index(); column < width; column += num_blocks * THREADS) {
        const int input = column < keys ? 0 : column < 2 * keys ? 1 : 2;
        const float* x = args.inputs[input] + column - input * keys;
        const int input_width = input < 2 ? keys : value_width(args);
        // In ascending order, since the rows before may be in the slot that is written.
        for (int i = 0; i < args.num_taps - 1; ++i) {
            const int number = rows - (args.num_taps - 1) + i;
            float value = 0.0f;
            if (number >= 0) {
                value = x[(i64)(first_row + number) * input_width];
            } else if (kept) {
                value = kept[(i64)(i + rows) * width + column];
            }
            to[(i64)i * width + column] = value;
        }
    }
}

// Change S by the rows of a sequence; see run_rows. Grid x: COLUMNS columns, grid y: a head, grid z: a
// sequence.
template <class Rule>
DEVICE void run(const Args& args, Row (&rows)[2]) {
    allow_next_kernel();
    wait_for_previous_kernel();
    const int sequence = block_z();
    if (sequence >= args.step.counts[1]) return;
    const int head = block_y(), lane = lane_index();
    const int key_head = args.is_tiled ? head % args.key_heads : head / (args.heads / args.key_heads);
    const int own_column = warp_index() * (WARP / PARTS) + lane % (WARP / PARTS);
    const Work work = {head, key_head, lane / (WARP / PARTS), block_x() * COLUMNS + own_column};
    const i32* slots = blocks_of(args.table, sequence);
    const float* before = slots[0] < 0 ? nullptr : state_at(args, slots[0]);
    float* after = state_at(args, slots[1]);
    const i64 first = kept_size(args) + (i64)head * KEY_DIM * args.value_dim + work.column;
    const bool has_column = work.column < args.value_dim;
    float state[OWN];
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        const int key = key_of(n, work.part);
        const bool exists = before && has_column && key < KEY_DIM;
        state[n] = exists ? before[first + (i64)key * args.value_dim] : 0.0f;
    }
    const float skip = args.skips ? args.skips[head] : 0.0f;
    const int begin = args.step.row_offsets[sequence], end = args.step.row_offsets[sequence + 1];
    OwnRow own = read_row(args, work, begin);
    for (int row = begin; row < end; ++row) {
        Row& shared = rows[(row - begin) % 2];
        share_row(shared, own);
        const OwnRow now = own;
        block_barrier();
        if (row + 1 < end) own = read_row(args, work, row + 1);
        const float out = run_row<Rule>(state, shared, now, work.part);
        if (has_column && work.part == 0)
            args.out[(i64)row * value_width(args) + head * args.value_dim + work.column] =
                Rule::result(out, now.value, skip);
    }
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        const int key = key_of(n, work.part);
        if (has_column && key < KEY_DIM) after[first + (i64)key * args.value_dim] = state[n];
    }
    const int num_tiles = (args.value_dim + COLUMNS - 1) / COLUMNS;
    keep_rows(args, begin, end - begin, before, after, head * num_tiles + block_x(), args.heads * num_tiles);
}
