// Rows [num_rows, width] float32, normalised if there is a norm, to float16 [num_rows, padded_width] for
// gemm.cu.
//
// A block takes a row, with the sums of gemv.cu.
#include "rows.cuh"

struct Args {
    Rows x;
    u8* out;
    i32 padded_width;
};

KERNEL BOUNDS(256, 4) round_rows(const Args args) {
    SHARED float sums[8];
    allow_next_kernel();
    wait_for_previous_kernel();
    const int stride = args.padded_width * 2;
    stage_rows(args.x, block_x(), 1, args.padded_width, args.out + (i64)block_x() * stride, stride, sums);
}
