// feed_tokens: a negative token id -1 - i becomes the token of output row i of the step before
//
//   token_ids  [rows] i32, changed in place; a thread has a row
//   tokens     [outputs] i32: what finish_rows wrote for the ticket that the step is fed from
//   speed      bound by the launch
#include "gpu.cuh"

constexpr int THREADS = 256;

struct Args {
    const i32* counts;  // [0]: rows of the step
    i32* token_ids;
    const i32* tokens;
};

KERNEL BOUNDS(THREADS, 1) feed_tokens(Args args) {
    const int row = block_x() * THREADS + thread_index();
    if (row >= args.counts[0]) return;
    const i32 id = args.token_ids[row];
    if (id < 0) args.token_ids[row] = args.tokens[-1 - id];
}
