// Rows [num_rows, width] float32, normalised if there is a norm, to float16 [num_rows, padded_width] for
// gemm.cu.
//
// In the order of products, the columns of each 32 are those of two products of 16, as weights.cuh deals them
// out: what lane t takes of product k_tile, columns 8t + 4 k_tile to 8t + 4 k_tile + 3, is at 16 k_tile + 2t
// (two columns) and 16 k_tile + 8 + 2t (two). Tensor cores that read x themselves (gemm_warpgroup.cu) need
// it.
//
// round_rows_int8 makes int8 of them, as rows_int8.cuh describes.
//
// A block takes a row, with the sums of gemv.cu.
#include "rows_int8.cuh"

struct Args {
    Rows x;
    u8* out;
    i32 padded_width;
    i32 in_product_order;  // for float16
    i32 group;             // columns that share a scale, for int8
};

KERNEL BOUNDS(256, 4) round_rows(const Args args) {
    SHARED float sums[8];
    allow_next_kernel();
    wait_for_previous_kernel();
    if (args.x.count && block_x() >= *args.x.count) return;
    const int stride = args.padded_width * 2;
    stage_rows(args.x, block_x(), 1, args.padded_width, args.out + (i64)block_x() * stride, stride, sums,
               args.in_product_order);
}

KERNEL BOUNDS(256, 4) round_rows_int8(const Args args) {
    SHARED float sums[8];
    allow_next_kernel();
    wait_for_previous_kernel();
    if (args.x.count && block_x() >= *args.x.count) return;
    const int chunks = args.padded_width / 64, stride = chunks * INT8_CHUNK;
    stage_int8_rows(args.x, block_x(), 1, chunks, args.group, args.out + (i64)block_x() * stride, stride,
                    sums);
}
