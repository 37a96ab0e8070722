// rope: rotates pairs (a, b) of each head: a' = a cos - b sin, b' = b cos + a sin; copies elements beyond
// 2 * half
//
//   x, out  [rows, heads, head_dim]  f32     cosines, sines  [rows, half]  f32, from float64 angles
//           (rope_angles.cpp)     half style pairs (i, i + half), interleaved style (2i, 2i + 1)
//   work    one row at a time
//   check   relative error < 1e-6   (tests/plugins/backend_cpu/test_device.py)
//   from    Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding"

#pragma once

#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE void turn_halves(const float* x, float* out, const float* cosines, const float* sines,
                             int64_t half) {
    for (int64_t i = 0; i < half; i += Vec::kLanes) {
        const int n = half - i < Vec::kLanes ? static_cast<int>(half - i) : Vec::kLanes;
        const Vec a = load_n(x + i, n);
        const Vec b = load_n(x + half + i, n);
        const Vec c = load_n(cosines + i, n);
        const Vec s = load_n(sines + i, n);
        store_n(out + i, a * c - b * s, n);
        store_n(out + half + i, b * c + a * s, n);
    }
}

LLMD_INLINE void turn_neighbours(const float* x, float* out, const float* cosines, const float* sines,
                                 int64_t half) {
    for (int64_t i = 0; i < half; ++i) {
        const float a = x[2 * i];
        const float b = x[2 * i + 1];
        out[2 * i] = a * cosines[i] - b * sines[i];
        out[2 * i + 1] = b * cosines[i] + a * sines[i];
    }
}

void rope(const RopeArgs& args, Worker& worker) {
    const int64_t turned = 2 * args.half;
    const size_t rest = sizeof(float) * static_cast<size_t>(args.head_dim - turned);
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const float* cosines = args.cosines + r * args.half;
        const float* sines = args.sines + r * args.half;
        for (int64_t head = r * args.heads; head < (r + 1) * args.heads; ++head) {
            const float* x = args.x + head * args.head_dim;
            float* out = args.out + head * args.head_dim;
            if (args.interleaved)
                turn_neighbours(x, out, cosines, sines, args.half);
            else
                turn_halves(x, out, cosines, sines, args.half);
            std::memcpy(out + turned, x + turned, rest);
        }
    });
}

}  // namespace llmd::LLMD_ISA
