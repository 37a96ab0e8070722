// compress: out[r] = sum over tokens t of softmax(gate[t] + bias[t % stride]) * x[t], for each element
//
//   x, gate  [rows, width]    f32      bias  [stride, width]  f32      out  [rows, dim]  f32
//   parts    [blocks, layers, 16 positions, x and gate]  f32, f16 or bf16 (stored.cuh), rounded when they are
//            stored
//   rows     that of the last of `stride` tokens; the others are 0
//   tokens   these, with their last dim elements. If vectors overlap, width is 2 dim, and as many tokens
//            before them are added, with their first dim elements
//   work     keep_parts: a thread stores an element of a row. compress: a thread makes an element of a
//            vector, and reads each gate twice
//   exact    tokens are added in order
//   speed    bound by latency: few rows have a vector
//   from     DeepSeek-AI 2026, "DeepSeek-V4 Technical Report", section 2.3
//
// Macro: FORMAT of stored.cuh.
#include "kv_memory.cuh"
#include "stored.cuh"

constexpr int THREADS = 128;

struct Args {
    Step step;
    KVMemory memory;
    const float* x;
    const float* gate;
    const float* bias;
    float* out;
    i32 width;
    i32 dim;
    i32 stride;
    i32 overlap;  // 1: vectors overlap
};

#if FORMAT == 0
DEVICE Stored to_stored(float x) { return x; }
#elif FORMAT == 1
DEVICE Stored to_stored(float x) { return {to_half(x)}; }
#else
DEVICE Stored to_stored(float x) {
    const u32 bits = bits_of(x);
    return {(u16)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
#endif

// x and gate of a position, one behind the other.
DEVICE Stored* parts_of(const Args& args, const i32* table, int position) {
    u8* block = args.memory.blocks + table[position / BLOCK_LEN] * args.memory.block_bytes;
    return (Stored*)(block + args.memory.layer_at) + (i64)(position % BLOCK_LEN) * 2 * args.width;
}

// Grid x: rows, grid y: THREADS elements of x and gate.
KERNEL BOUNDS(THREADS, 8) keep_parts(Args args) {
    allow_next_kernel();
    const int row = block_x(), element = block_y() * THREADS + thread_index();
    wait_for_previous_kernel();
    if (row >= args.step.counts[0] || element >= 2 * args.width) return;
    const i32* table = blocks_of(args.memory.block_table, args.step.sequences[row]);
    const i64 first = (i64)row * args.width;
    const float part =
        element < args.width ? args.x[first + element] : args.gate[first + element - args.width];
    parts_of(args, table, args.step.positions[row])[element] = to_stored(part);
}

// A token's x and its gate with the bias, for one element of the vector that a row completes.
struct Part {
    float x, gate;
};
DEVICE Part part_of(const Args& args, const i32* table, int token, int element) {
    const Stored* parts = parts_of(args, table, token) + element;
    const float bias = args.bias[(i64)(token % args.stride) * args.width + element];
    return {value_of(parts[0]), value_of(parts[args.width]) + bias};
}

// Grid x: rows, grid y: THREADS elements of a vector.
KERNEL BOUNDS(THREADS, 8) compress(Args args) {
    allow_next_kernel();
    const int row = block_x(), element = block_y() * THREADS + thread_index();
    wait_for_previous_kernel();
    if (row >= args.step.counts[0] || element >= args.dim) return;
    float& out = args.out[(i64)row * args.dim + element];
    const int end = args.step.positions[row] + 1, own = end - args.stride;
    if (end % args.stride) {
        out = 0.0f;
        return;
    }
    const i32* table = blocks_of(args.memory.block_table, args.step.sequences[row]);
    const int first = args.overlap && own > 0 ? own - args.stride : own;
    const int last_part = args.overlap ? args.dim + element : element;
    float largest = -infinity();
#pragma unroll 4
    for (int token = first; token < end; ++token) {
        largest = fmaxf(largest, part_of(args, table, token, token < own ? element : last_part).gate);
    }
    float total = 0.0f, sum = 0.0f;
#pragma unroll 4
    for (int token = first; token < end; ++token) {
        const Part part = part_of(args, table, token, token < own ? element : last_part);
        const float weight = expf(part.gate - largest);
        total += weight;
        sum = fmaf(weight, part.x, sum);
    }
    out = sum / total;
}
