// token_shift: outs[i][r] = x[r] + (x[r - 1] - x[r]) * shares[i]
//
//   x, outs  [rows, width]  f32      shares  [width]  f32
//   states   [slots, layers, size]  f32; the last row of a sequence begins at `offset` in the state of a
//   layer table    the block table [sequences, 2]: the slot that a sequence starts from (-1: zeros), and the
//   slot to
//            write
//   work     a thread has one column of a sequence, and reads each row of it once; block y has sequence y
//   speed    bound by the launch for few rows; for prompts by few threads, since rows follow each other
//   from     Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era"

#include "step.cuh"

constexpr int MOST = 8;  // outputs

struct Args {
    Step step;
    const float* x;
    float* outs[MOST];
    const float* shares[MOST];
    float* states;
    const i32* table;  // see blocks_of
    i32 count;         // outputs
    i32 width;
    i32 layers;
    i32 layer;
    i32 size;
    i32 offset;
};

DEVICE float* row_before(const Args& args, int slot) {
    return args.states + ((i64)slot * args.layers + args.layer) * args.size + args.offset;
}

KERNEL shift_rows(const Args args) {
    const int sequence = block_y(), column = block_x() * num_threads() + thread_index();
    if (sequence >= args.step.counts[1] || column >= args.width) return;
    const i32* slots = blocks_of(args.table, sequence);
    float before = slots[0] < 0 ? 0.0f : row_before(args, slots[0])[column];
    const int end = args.step.row_offsets[sequence + 1];
    for (int row = args.step.row_offsets[sequence]; row < end; ++row) {
        const i64 at = (i64)row * args.width + column;
        const float here = args.x[at], change = before - here;
        for (int i = 0; i < args.count; ++i) args.outs[i][at] = fmaf(change, args.shares[i][column], here);
        before = here;
    }
    row_before(args, slots[1])[column] = before;
}
