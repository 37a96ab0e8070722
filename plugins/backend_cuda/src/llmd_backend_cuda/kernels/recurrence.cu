// recurrence: state = sigmoid(decay) * state + x[r], out[r] = state, one row of a sequence after another
//
//   x, out  [rows, width]            f32
//   decay   [width]                  f32
//   states  [slots, layers, width]   f32; the state after each row is rounded to float32
//   table   the block table [sequences, 2]: the slot that a sequence starts from (-1: zeros), and the slot to
//           write
//   work    a thread has one element of a sequence; block y has sequence y. Products and sums in float64
//   speed   bound by the latency of one load for each row: an op for tests

#include "step.cuh"

struct Args {
    Step step;
    const float* x;
    const float* decay;
    float* out;
    float* states;
    const i32* table;  // see blocks_of
    i32 width;
    i32 layers;
    i32 layer;
};

KERNEL recurrence(Args args) {
    const int sequence = block_y(), element = block_x() * num_threads() + thread_index();
    if (sequence >= args.step.counts[1] || element >= args.width) return;
    const i32* slots = blocks_of(args.table, sequence);
    const i32 from = slots[0], to = slots[1];
    const double decay = 1.0 / (1.0 + exp(-(double)args.decay[element]));
    float state = 0.0f;
    if (from >= 0) state = args.states[((i64)from * args.layers + args.layer) * args.width + element];
    const int end = args.step.row_offsets[sequence + 1];
    for (int row = args.step.row_offsets[sequence]; row < end; ++row) {
        const i64 at = (i64)row * args.width + element;
        state = (float)(decay * state + args.x[at]);
        args.out[at] = state;
    }
    args.states[((i64)to * args.layers + args.layer) * args.width + element] = state;
}
