// merge_attention: out = a * e^(a_sums - s) + b * e^(b_sums - s), s = log(e^a_sums + e^b_sums), for each head
//
//   a, b, out  [rows, heads, dim]  f32     a_sums, b_sums  [rows, heads]  f32; one may be minus infinity
//   work   one row at a time
//   check  NMSE < 1e-9   (the cases "merge_attention" of llmd.testing.compressed_cases)
//   from   Milakov & Gimelshein 2018, "Online normalizer calculation for softmax"

#pragma once

#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

void merge_attention(const MergeArgs& args, Worker& worker) {
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        for (int64_t h = r * args.heads; h < (r + 1) * args.heads; ++h) {
            const float most = args.a_sums[h] > args.b_sums[h] ? args.a_sums[h] : args.b_sums[h];
            const Vec of_a = exp(set1(args.a_sums[h] - most));
            const Vec of_b = exp(set1(args.b_sums[h] - most));
            const Vec first = of_a / (of_a + of_b);
            const Vec second = of_b / (of_a + of_b);
            const float* a = args.a + h * args.dim;
            const float* b = args.b + h * args.dim;
            for (int64_t i = 0; i < args.dim; i += Vec::kLanes) {
                const int64_t left = args.dim - i;
                const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
                store_n(args.out + h * args.dim + i, fma(load_n(a + i, n), first, load_n(b + i, n) * second),
                        n);
            }
        }
    });
}

}  // namespace llmd::LLMD_ISA
