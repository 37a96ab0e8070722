// merge_attention: out = a * e^(a_sums - s) + b * e^(b_sums - s), s = ln(e^a_sums + e^b_sums), for each head
//
//   a, b, out       [rows, heads, dim]  f32
//   a_sums, b_sums  [rows, heads]       f32; one of both may be -infinity
//   work   a thread makes VECTOR neighbouring elements of a row
//   speed  bound by the launch for few rows, else by memory
//   from   Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"
//
// Macro: VECTOR, 4 or, if heads are not aligned, 1.
#include "gpu.cuh"

#ifndef VECTOR
#define VECTOR 4
#endif

struct alignas(VECTOR * sizeof(float)) Elements {
    float at[VECTOR];
};

struct Args {
    const float* a;
    const float* a_sums;
    const float* b;
    const float* b_sums;
    float* out;
    i64 count;  // elements of all rows
    i32 dim;
};

KERNEL merge_attention(Args args) {
    const i64 first = ((i64)block_x() * num_threads() + thread_index()) * VECTOR;
    if (first >= args.count) return;
    const float a_sum = args.a_sums[first / args.dim], b_sum = args.b_sums[first / args.dim];
    const float largest = fmaxf(a_sum, b_sum);
    const float of_a = expf(a_sum - largest), of_b = expf(b_sum - largest), both = of_a + of_b;
    const Elements a = *(const Elements*)(args.a + first), b = *(const Elements*)(args.b + first);
    Elements out;
    for (int i = 0; i < VECTOR; ++i) out.at[i] = fmaf(a.at[i], of_a / both, b.at[i] * (of_b / both));
    *(Elements*)(args.out + first) = out;
}
