// store_kv: store keys and values in the KV memory; in the same launch, norm heads of queries and keys (rms)
// and rotate them as rope.cu
//
//   q, k, v  [rows, heads or kv_heads, HEAD_DIM]  f32; rotated queries go to q_out, and keys are rotated,
//            then stored. Without q, only keys and values are stored; with no pairs, they are not rotated.
//            With int4, all of them are rotated as in kv_hadamard.cuh after that. Without k, only queries are
//            written: attention reads the keys and values of another layer. Latent vectors are keys only;
//            with a STRIDE, only rows that complete a vector store one
//   work     a warp has a head of a row: first come those of queries, then keys, then values. The threads of
//            a block compute the turn of each pair once. A key is rotated in shared memory, and stored 32
//            dimensions at once
//   speed    bound by latency for few rows, and by the many small stores of values for many rows
//
// copy_blocks: copy blocks in the given order, of which one may copy what another has just written
//
//   work     each thread copies the same 16 bytes of all blocks, so that its own order is that of the copies
//
// Macros: those of kv_layout.cuh.
#include "kv_hadamard.cuh"
#include "kv_layout.cuh"
#include "kv_rotation.cuh"

constexpr int WARPS = 4;
constexpr int THREADS = WARPS * WARP;

struct Rotation {
    const double* inv_freq;
    i32 pairs;
    float factor;
    i32 interleaved;
};

// Of heads: x / sqrt(mean(x^2) + eps) * (offset + gain).
struct HeadNorm {
    i32 exists;
    float eps;
    float offset;
    const float* gain;  // [HEAD_DIM]; null: the factor is 1
};

struct Args {
    Step step;
    KVMemory memory;
    const float* q;
    const float* k;
    const float* v;
    float* q_out;
    Rotation q_rotation;
    Rotation k_rotation;
    HeadNorm q_norm;
    HeadNorm k_norm;
    i32 heads;  // of queries; 0: there are none
};

DEVICE void fill_turns(Turn* turns, const Rotation& rotation, int position) {
    for (int i = thread_index(); i < rotation.pairs; i += THREADS) {
        turns[i] = turn_by(position, rotation.inv_freq[i], rotation.factor);
    }
}

// Write a head to `out`, rotated; `x` may be the same.
DEVICE void rotate(float* out, const float* x, const Rotation& rotation, const Turn* turns) {
    for (int i = lane_index(); i < rotation.pairs; i += WARP) {
        const Pair pair = pair_at(i, rotation.pairs, rotation.interleaved);
        const float u = x[pair.first], v = x[pair.second];
        out[pair.first] = turned_first(u, v, turns[i]);
        out[pair.second] = turned_second(u, v, turns[i]);
    }
    for (int i = 2 * rotation.pairs + lane_index(); i < HEAD_DIM; i += WARP) out[i] = x[i];
}

// A head, of which a lane has every 32nd dimension.
struct Head {
    float at[SLABS];
};

// Read a head; zeros follow the last dimension.
DEVICE Head read_head(const float* x) {
    Head head;
#pragma unroll
    for (int slab = 0; slab < SLABS; ++slab) {
        const int dim = slab * SLAB + lane_index();
        head.at[slab] = dim < HEAD_DIM ? x[dim] : 0.0f;
    }
    return head;
}

// Store a head at a place in its block.
DEVICE void store_head(u8* to, bool is_key, int place, Head head) {
    if (ROTATED) {
        rotate_head(head.at);
        const float last = shuffle(head.at[SLABS - 1], (HEAD_DIM - 1) % SLAB);
        if ((SLABS - 1) * SLAB + lane_index() >= HEAD_DIM) head.at[SLABS - 1] = last;
    }
#pragma unroll
    for (int slab = 0; slab < SLABS; ++slab) {
        const float x = head.at[slab];
        store_slab(to, is_key, place, slab, ROTATED && place % 2 ? -x : x);
    }
}

DEVICE void write_head(float* to, const Head& head) {
#pragma unroll
    for (int slab = 0; slab < SLABS; ++slab) {
        const int dim = slab * SLAB + lane_index();
        if (dim < HEAD_DIM) to[dim] = head.at[slab];
    }
}

// Return where a head is, normed if there is a norm: then it is in the shared memory of the warp.
DEVICE const float* normed(float* shared, const float* x, const HeadNorm& norm) {
    if (!norm.exists) return x;
    Head head = read_head(x);
    float squares = 0.0f;
#pragma unroll
    for (int slab = 0; slab < SLABS; ++slab) squares = fmaf(head.at[slab], head.at[slab], squares);
    const float factor = 1.0f / sqrtf(warp_sum(squares) / HEAD_DIM + norm.eps);
#pragma unroll
    for (int slab = 0; slab < SLABS; ++slab) {
        const int dim = slab * SLAB + lane_index();
        const float gain = norm.gain && dim < HEAD_DIM ? norm.offset + norm.gain[dim] : 1.0f;
        head.at[slab] *= factor * gain;
    }
    write_head(shared, head);
    warp_barrier();
    return shared;
}

KERNEL BOUNDS(THREADS, 4) store_kv(Args args) {
    SHARED Turn turns[2][HEAD_DIM / 2 + 1];  // of queries and keys
    SHARED float rotated[WARPS][DIM];
    allow_next_kernel();
    const int row = block_x();
    if (row >= args.step.counts[0]) return;  // the blocks of row 0 wait for the kernel before
    const int kv_heads = args.k ? args.memory.kv_heads : 0;
    const int first_key = args.heads, first_value = args.heads + kv_heads;
    const int first = block_y() * WARPS, n = first + warp_index();
    const int position = args.step.positions[row], sequence = args.step.sequences[row];
    if (first < first_key) fill_turns(turns[0], args.q_rotation, position);
    if (first < first_value && first + WARPS > first_key) fill_turns(turns[1], args.k_rotation, position);
    wait_for_previous_kernel();
    if (STRIDE > 1 && (position + 1) % STRIDE) return;
    const int number = last_vector(position);
    const int block = blocks_of(args.memory.block_table, sequence)[number / VECTORS];
    block_barrier();
    float* own = rotated[warp_index()];
    if (n < first_key) {
        const i64 at = ((i64)row * args.heads + n) * HEAD_DIM;
        float* to = ROTATED ? own : args.q_out + at;
        rotate(to, normed(own, args.q + at, args.q_norm), args.q_rotation, turns[0]);
        if (ROTATED) {
            warp_barrier();
            Head head = read_head(to);
            rotate_head(head.at);
            write_head(args.q_out + at, head);
        }
    } else if (n < first_value + (LATENT ? 0 : kv_heads)) {
        const bool is_key = n < first_value;
        const int kv_head = n - (is_key ? first_key : first_value);
        const float* x = (is_key ? args.k : args.v) + ((i64)row * kv_heads + kv_head) * HEAD_DIM;
        if (is_key && (args.k_rotation.pairs || args.k_norm.exists)) {
            rotate(own, normed(own, x, args.k_norm), args.k_rotation, turns[1]);
            warp_barrier();
            x = own;
        }
        u8* to = head_of(args.memory, kv_head) + block * args.memory.block_bytes;
        store_head(to, is_key, number % VECTORS, read_head(x));
    }
}

struct CopyArgs {
    u8* blocks;
    i64 block_bytes;
    const i32* count;
    const i32* copies;  // [count, 3]: group, source, target
    i32 group;
};

KERNEL BOUNDS(256, 1) copy_blocks(CopyArgs args) {
    const i64 at = ((i64)block_x() * num_threads() + thread_index()) * 16;
    if (at >= args.block_bytes) return;
    const int count = args.count[0];
    for (int n = 0; n < count; ++n) {
        const i32* copy = args.copies + 3 * n;
        if (copy[0] != args.group) continue;
        *(Words4*)(args.blocks + copy[2] * args.block_bytes + at) =
            *(const Words4*)(args.blocks + copy[1] * args.block_bytes + at);
    }
}
