// norm: y = (x - m) / sqrt(mean((x - m)^2) + eps) * (offset + w) + b
//
//   m      mean(x) for `layer`, 0 for `rms`
//   x, y   [pieces, width]  f32; a piece is a row, or one head of a row
//   w, b   [width]  f32 or absent; or [heads, width], for each head of a row its own
//   work   pieces of about 1024 elements at a time; sums have one partial sum per lane, in order
//   check  relative error < 1e-6   (tests/plugins/backend_cpu/test_device.py)
//   from   Ba et al. 2016, "Layer Normalization"; Zhang & Sennrich 2019, "Root Mean Square Layer
//          Normalization"

#pragma once

#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE float sum_of(const float* x, int64_t width) {
    Vec total = set1(0.0F);
    int64_t i = 0;
    for (; i + Vec::kLanes <= width; i += Vec::kLanes) total = total + load(x + i);
    if (i < width) total = total + load_n(x + i, width - i);
    return sum(total);
}

LLMD_INLINE float sum_of_squares(const float* x, int64_t width, float mean) {
    const Vec center = set1(mean);
    Vec total = set1(0.0F);
    int64_t i = 0;
    for (; i + Vec::kLanes <= width; i += Vec::kLanes) {
        const Vec d = load(x + i) - center;
        total = fma(d, d, total);
    }
    float tail = 0.0F;
    for (; i < width; ++i) tail += (x[i] - mean) * (x[i] - mean);
    return sum(total) + tail;
}

// `i` is the place in weights and biases.
LLMD_INLINE Vec normed(const NormArgs& args, Vec x, int64_t i, int n, Vec mean, Vec inverse) {
    Vec y = (x - mean) * inverse;
    if (args.weight != nullptr)
        y = y * (set1(args.offset) + load_n(args.weight + i, n));
    else
        y = y * set1(args.offset + 1.0F);
    if (args.bias != nullptr) y = y + load_n(args.bias + i, n);
    return y;
}

void norm(const NormArgs& args, Worker& worker) {
    const auto width = static_cast<float>(args.width);
    constexpr int64_t kGrain = 1024;  // elements
    const int64_t together = args.width < kGrain ? kGrain / args.width : 1;
    each_near(worker, args.pieces, together, [&](int64_t piece) LLMD_LAMBDA {
        const float* x = args.x + piece * args.width;
        float* out = args.out + piece * args.width;
        const int64_t own = piece % args.weights * args.width;  // where its weights begin
        const float mean = args.subtract_mean ? sum_of(x, args.width) / width : 0.0F;
        const float variance = sum_of_squares(x, args.width, mean) / width;
        const Vec center = set1(mean);
        const Vec inverse = set1(1.0F / __builtin_sqrtf(variance + args.eps));
        for (int64_t i = 0; i < args.width; i += Vec::kLanes) {
            const int n = args.width - i < Vec::kLanes ? static_cast<int>(args.width - i) : Vec::kLanes;
            store_n(out + i, normed(args, load_n(x + i, n), own + i, n, center, inverse), n);
        }
    });
}

}  // namespace llmd::LLMD_ISA
