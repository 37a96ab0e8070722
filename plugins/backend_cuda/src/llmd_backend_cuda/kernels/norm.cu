// norm: out = (x - m) / sqrt(mean((x - m)^2) + eps) * (offset + weight) + bias
//
//   m             mean(x) for layer norm (LAYER 1), 0 for rms
//   x, out        [slices, width]  f32; a slice is a row, or one head of a row
//   weight, bias  [weights, width] f32 or absent; slices take turns. Without a weight, the factor is 1
//   with ADD, out is residual + that * scale
//   work   WARPS warps have a slice; a block has four slices of one warp, or one slice of several. A thread
//          keeps LOADS vectors of VECTOR elements in registers, so that memory is read once
//   sums   float32: in a thread, over the lanes, over the warps, in an order that depends on the width only.
//          The mean of layer norm is corrected by the mean of what is left, so that it loses no digits in
//          rows far from zero
//   speed  bound by latency for few rows, so weights are read before the sums if registers allow it; else by
//          memory

#include "gpu.cuh"

#ifndef WARPS
#define LAYER 0
#define ADD 0
#define WARPS 16
#define LOADS 2
#define VECTOR 4
#endif

constexpr int SLICES = WARPS == 1 ? 4 : 1;  // of a block
constexpr int THREADS = WARP * WARPS * SLICES;
constexpr bool READ_EARLY = LOADS * VECTOR <= 16;

// Neighbouring elements that are read and written by one instruction.
struct alignas(VECTOR * sizeof(float)) Elements {
    float at[VECTOR];
};

struct Args {
    const float* x;
    const float* residual;  // [slices, width], with ADD
    const float* weight;
    const float* bias;
    float* out;
    i32 slices;
    i32 width;
    i32 weights;  // that differ: 1, or one for each slice of a row
    float scale;  // with ADD
    float offset;
    float eps;
};

DEVICE Elements all_equal(float value) {
    Elements elements;
    for (int i = 0; i < VECTOR; ++i) elements.at[i] = value;
    return elements;
}

// Read elements of a vector, plus `offset`; `absent` if there is no vector or no such column.
DEVICE Elements read_vector(const float* vector, int column, int width, float offset, float absent) {
    if (!vector || column >= width) return all_equal(absent);
    Elements elements = *(const Elements*)(vector + column);
    for (int i = 0; i < VECTOR; ++i) elements.at[i] += offset;
    return elements;
}

// Return the sum over the threads of a slice, the same in all of them.
DEVICE float slice_sum(float value, float (&of_warps)[WARPS]) {
    value = warp_sum(value);
    if (WARPS == 1) return value;
    if (lane_index() == 0) of_warps[warp_index()] = value;
    block_barrier();
    float total = of_warps[0];
#pragma unroll
    for (int warp = 1; warp < WARPS; ++warp) total += of_warps[warp];
    return total;
}

KERNEL BOUNDS(THREADS, 1) norm_rows(Args args) {
    SHARED float of_warps[3][WARPS];
    const i64 slice = (i64)block_x() * SLICES + (WARPS == 1 ? warp_index() : 0);
    if (slice >= args.slices) return;
    const int first = (WARPS == 1 ? lane_index() : thread_index()) * VECTOR;
    constexpr int step = WARP * WARPS * VECTOR;
    const i64 begin = slice * args.width, own = slice % args.weights * args.width;
    const float* weight = args.weight ? args.weight + own : nullptr;
    const float* of_bias = args.bias ? args.bias + own : nullptr;

    Elements x[LOADS], gain[LOADS], bias[LOADS];
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int column = first + n * step;
        x[n] = read_vector(args.x + begin, column, args.width, 0.0f, 0.0f);
        if (READ_EARLY) {
            gain[n] = read_vector(weight, column, args.width, args.offset, 1.0f);
            bias[n] = read_vector(of_bias, column, args.width, 0.0f, 0.0f);
        }
    }

#if LAYER
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        for (int i = 0; i < VECTOR; ++i) sum += x[n].at[i];
    }
    const float mean = slice_sum(sum, of_warps[0]) / args.width;
    float left = 0.0f;
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        for (int i = 0; i < VECTOR; ++i) {
            x[n].at[i] = first + n * step < args.width ? x[n].at[i] - mean : 0.0f;
            left += x[n].at[i];
        }
    }
    const float correction = slice_sum(left, of_warps[1]) / args.width;
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        for (int i = 0; i < VECTOR; ++i) {
            x[n].at[i] = first + n * step < args.width ? x[n].at[i] - correction : 0.0f;
        }
    }
#endif
    float squares = 0.0f;
#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        for (int i = 0; i < VECTOR; ++i) squares = fmaf(x[n].at[i], x[n].at[i], squares);
    }
    const float factor = 1.0f / sqrtf(slice_sum(squares, of_warps[2]) / args.width + args.eps);

#pragma unroll
    for (int n = 0; n < LOADS; ++n) {
        const int column = first + n * step;
        if (column >= args.width) continue;
        if (!READ_EARLY) {
            gain[n] = read_vector(weight, column, args.width, args.offset, 1.0f);
            bias[n] = read_vector(of_bias, column, args.width, 0.0f, 0.0f);
        }
        Elements out;
        for (int i = 0; i < VECTOR; ++i) {
            out.at[i] = fmaf(x[n].at[i] * factor, gain[n].at[i], bias[n].at[i]);
        }
#if ADD
        const Elements residual = *(const Elements*)(args.residual + begin + column);
        for (int i = 0; i < VECTOR; ++i) out.at[i] = fmaf(out.at[i], args.scale, residual.at[i]);
#endif
        *(Elements*)(args.out + begin + column) = out;
    }
}
