// generalized_delta: S = diag(decay) S - put (removal S) + k v, out = r S, one row of a sequence after
// another
//
//   r, k, v, decay, a, out, bonus  [rows, heads * KEY_DIM]  f32
//   removal  k * removal with length 1     put  rate * removal     k  k * (1 + (rate - 1) * mixing)
//   rate     sigmoid(a)     decay  exp(-exp(-1/2) * sigmoid(decay))     bonus  sum(r * k * bonuses) * v
//   states   [slots, layers, size]  f32; S of each head begins at `offset` in the state of a layer
//   work     prepare_rows: a block has a row and a head. run_rows: as in state_rows.cuh, which has the table
//   too exact    all sums have an order that does not depend on the rows of the step speed    run_rows reads
//   and writes S once a step; for prompts it is bound by the latency of a row from     Peng et al. 2025,
//   "RWKV-7 'Goose' with Expressive Dynamic State Evolution"
//
// Macro: KEY_DIM, elements of a head.
#define BY_ELEMENT 1
#include "state_rows.cuh"

struct WkvArgs {
    Step step;
    const float* r;
    const float* k;
    const float* v;
    const float* decay;
    const float* a;
    const float* removal;  // [heads * KEY_DIM], as the next two
    const float* mixing;
    const float* bonuses;
    float* rows;    // [rows, 3, heads * KEY_DIM]: removal, keys, put
    float* decays;  // [rows, heads * KEY_DIM]
    float* out;
    float* bonus;
    float* states;
    const i32* table;  // see blocks_of
    i32 layers;
    i32 layer;
    i32 heads;
    i32 size;
    i32 offset;
};

constexpr float WKV_DECAY = -0.6065306597126334f;
constexpr float WKV_EPS = 1e-12f;

DEVICE int wkv_width(const WkvArgs& args) { return args.heads * KEY_DIM; }
DEVICE float* wkv_state(const WkvArgs& args, int slot, int head) {
    float* state = args.states + ((i64)slot * args.layers + args.layer) * args.size + args.offset;
    return state + (i64)head * KEY_DIM * KEY_DIM;
}

// What a row does to a head, and what a thread copies of it; see Row and OwnRow.
struct alignas(16) WkvRow {
    float r[PADDED], k[PADDED], decays[PADDED], removal[PADDED], put[PADDED];
};
struct OwnWkvRow {
    float r[LOADS], k[LOADS], decays[LOADS], removal[LOADS], put[LOADS], value;
};

// Grid x: the heads, grid y: a row.
KERNEL BOUNDS(THREADS, 4) prepare_rows(const WkvArgs args) {
    SHARED float sums[2][THREADS / WARP];
    allow_next_kernel();
    wait_for_previous_kernel();
    const int row = block_y(), head = block_x(), width = wkv_width(args);
    if (row >= args.step.counts[0]) return;
    const i64 first = (i64)row * width + head * KEY_DIM;
    float* removal = args.rows + (i64)row * 3 * width + head * KEY_DIM;
    float removed[LOADS], squares = 0.0f;
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int i = n * THREADS + thread_index();
        removed[n] = i < KEY_DIM ? args.k[first + i] * args.removal[head * KEY_DIM + i] : 0.0f;
        squares = fmaf(removed[n], removed[n], squares);
    }
    const float factor = 1.0f / fmaxf(sqrtf(block_sum(squares, sums[0])), WKV_EPS);
    float read = 0.0f;
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int i = n * THREADS + thread_index(), place = head * KEY_DIM + i;
        if (i >= KEY_DIM) break;
        const float rate = sigmoid(args.a[first + i]);
        const float key = args.k[first + i] * fmaf(rate - 1.0f, args.mixing[place], 1.0f);
        removal[i] = removed[n] * factor;
        removal[width + i] = key;
        removal[2 * width + i] = rate * removal[i];
        args.decays[first + i] = expf(WKV_DECAY * sigmoid(args.decay[first + i]));
        read = fmaf(args.r[first + i] * args.bonuses[place], key, read);
    }
    const float bonus = block_sum(read, sums[1]);
    for (int i = thread_index(); i < KEY_DIM; i += THREADS) args.bonus[first + i] = bonus * args.v[first + i];
}

DEVICE OwnWkvRow read_wkv(const WkvArgs& args, int head, int column, int row) {
    const int width = wkv_width(args);
    const i64 first = (i64)row * width + head * KEY_DIM;
    const float* removal = args.rows + (i64)row * 3 * width + head * KEY_DIM;
    OwnWkvRow own = {};
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int i = n * THREADS + thread_index();
        if (i >= KEY_DIM) break;
        own.r[n] = args.r[first + i], own.decays[n] = args.decays[first + i];
        own.removal[n] = removal[i], own.k[n] = removal[width + i], own.put[n] = removal[2 * width + i];
    }
    if (column < KEY_DIM) own.value = args.v[first + column];
    return own;
}

DEVICE void share_wkv(WkvRow& shared, const OwnWkvRow& own) {
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int i = n * THREADS + thread_index();
        if (i >= PADDED) break;
        shared.r[i] = own.r[n], shared.k[i] = own.k[n], shared.decays[i] = own.decays[n];
        shared.removal[i] = own.removal[n], shared.put[i] = own.put[n];
    }
}

// Change the state by a row; return the element of the result that belongs to the column.
DEVICE float run_wkv(float (&state)[OWN], const WkvRow& row, float value, int part) {
    float found = 0.0f, out = 0.0f;
#pragma unroll
    for (int n = 0; n < OWN; ++n) found = fmaf(row.removal[key_of(n, part)], state[n], found);
    found = sum_of_parts(found);
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        const int key = key_of(n, part);
        state[n] = fmaf(row.k[key], value, state[n] * row.decays[key]);
        state[n] = fmaf(row.put[key], -found, state[n]);
        out = fmaf(row.r[key], state[n], out);
    }
    return sum_of_parts(out);
}

// Grid x: COLUMNS columns, grid y: a head, grid z: a sequence.
KERNEL BOUNDS(THREADS, 2) run_rows(const WkvArgs args) {
    SHARED WkvRow rows[2];
    allow_next_kernel();
    wait_for_previous_kernel();
    const int sequence = block_z();
    if (sequence >= args.step.counts[1]) return;
    const int head = block_y(), lane = lane_index(), part = lane / (WARP / PARTS);
    const int column = block_x() * COLUMNS + warp_index() * (WARP / PARTS) + lane % (WARP / PARTS);
    const bool has_column = column < KEY_DIM;
    const i32* slots = blocks_of(args.table, sequence);
    const float* before = slots[0] < 0 ? nullptr : wkv_state(args, slots[0], head);
    float* after = wkv_state(args, slots[1], head);
    float state[OWN];
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        const int key = key_of(n, part);
        const bool exists = before && has_column && key < KEY_DIM;
        state[n] = exists ? before[(i64)key * KEY_DIM + column] : 0.0f;
    }
    const int begin = args.step.row_offsets[sequence], end = args.step.row_offsets[sequence + 1];
    OwnWkvRow own = read_wkv(args, head, column, begin);
    for (int row = begin; row < end; ++row) {
        WkvRow& shared = rows[(row - begin) % 2];
        share_wkv(shared, own);
        const float value = own.value;
        block_barrier();
        if (row + 1 < end) own = read_wkv(args, head, column, row + 1);
        const float out = run_wkv(state, shared, value, part);
        if (has_column && part == 0) args.out[(i64)row * wkv_width(args) + head * KEY_DIM + column] = out;
    }
#pragma unroll
    for (int n = 0; n < OWN; ++n) {
        const int key = key_of(n, part);
        if (has_column && key < KEY_DIM) after[(i64)key * KEY_DIM + column] = state[n];
    }
}
