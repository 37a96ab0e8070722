// rope: rotate the first 2 * pairs elements of each head of x by the row's position; copy the others to out
//
//   x, out    [rows, heads, head_dim]  f32; (u, v) becomes (u c - v s, v c + u s), with the cosine c and the
//             sine s of position * inv_freq[i], times factor; with a stride, positions are rounded down
//             to its multiples
//   inv_freq  [pairs]  f64
//   work      a warp has a head of a row. The threads of a block compute the turn of each pair once
//   speed     bound by memory, and by latency for few rows
//   from      Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding"
#include "kv_rotation.cuh"
#include "step.cuh"

constexpr int WARPS = 4;
constexpr int THREADS = WARPS * WARP;
constexpr int MOST_PAIRS = 512;

struct Args {
    Step step;
    const float* x;
    float* out;
    const double* inv_freq;
    float factor;
    i32 heads;
    i32 head_dim;
    i32 pairs;
    i32 interleaved;
    i32 stride;
};

KERNEL BOUNDS(THREADS, 4) rope_rows(Args args) {
    SHARED Turn turns[MOST_PAIRS];
    const int row = block_x();
    if (row >= args.step.counts[0]) return;
    const int own = args.step.positions[row], position = own - own % args.stride;
    for (int i = thread_index(); i < args.pairs; i += THREADS) {
        turns[i] = turn_by(position, args.inv_freq[i], args.factor);
    }
    block_barrier();
    const int head = block_y() * WARPS + warp_index();
    if (head >= args.heads) return;
    const i64 at = ((i64)row * args.heads + head) * args.head_dim;
    for (int i = lane_index(); i < args.pairs; i += WARP) {
        const Pair pair = pair_at(i, args.pairs, args.interleaved);
        const float u = args.x[at + pair.first], v = args.x[at + pair.second];
        args.out[at + pair.first] = turned_first(u, v, turns[i]);
        args.out[at + pair.second] = turned_second(u, v, turns[i]);
    }
    for (int i = 2 * args.pairs + lane_index(); i < args.head_dim; i += WARP)
        args.out[at + i] = args.x[at + i];
}
