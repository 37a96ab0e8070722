// rotate: an orthonormal Hadamard transform of a head, which is its own inverse
//
//   x      [count]  f32, in place
//   blocks of the largest powers of two, largest first (96 is 64 and 32): each becomes H x / sqrt(n), with
//          H in the order of Sylvester's construction
//   order  butterflies over distances 1, 2, 4, …, each sum rounded to f32; then one product with
//          f32(1 / sqrt(n))
//   check  equal to llmd.builtin.reference.rotation   (tests/plugins/backend_cpu/test_device.py)
//   from   Ashkboos et al. 2024, "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs"

#pragma once

#include <cmath>

namespace llmd::LLMD_ISA {

// The butterflies over distances within a vector.
template <int kDistance>
LLMD_INLINE void mix_lanes(float* x, int64_t size) {
    if constexpr (kDistance < Vec::kLanes) {
        float signs[Vec::kLanes];
        for (int i = 0; i < Vec::kLanes; ++i) signs[i] = (i & kDistance) != 0 ? -1.0F : 1.0F;
        const Vec sign = load(signs);
        for (int64_t i = 0; i < size; i += Vec::kLanes) {
            const Vec lanes = load(x + i);
            store(x + i, swap_lanes<kDistance>(lanes) + lanes * sign);
        }
        mix_lanes<2 * kDistance>(x, size);
    }
}

// Blocks smaller than a vector.
LLMD_INLINE void mix_few(float* x, int64_t size) {
    for (int64_t distance = 1; distance < size; distance *= 2) {
        for (int64_t i = 0; i < size; ++i) {
            if ((i & distance) != 0) continue;
            const float sum = x[i] + x[i + distance];
            x[i + distance] = x[i] - x[i + distance];
            x[i] = sum;
        }
    }
}

LLMD_INLINE void mix(float* x, int64_t size) {
    if (size < Vec::kLanes) return mix_few(x, size);
    mix_lanes<1>(x, size);
    for (int64_t distance = Vec::kLanes; distance < size; distance *= 2) {
        for (int64_t i = 0; i < size; i += Vec::kLanes) {
            if ((i & distance) != 0) continue;
            const Vec low = load(x + i);
            const Vec high = load(x + i + distance);
            store(x + i, low + high);
            store(x + i + distance, low - high);
        }
    }
}

LLMD_INLINE void rotate(float* x, int64_t count) {
    for (int64_t first = 0, size = 1; first < count; first += size) {
        for (size = 1; 2 * size <= count - first;) size *= 2;
        mix(x + first, size);
        const auto factor = static_cast<float>(1.0 / ::sqrt(static_cast<double>(size)));
        for (int64_t i = 0; i < size; ++i) x[first + i] *= factor;
    }
}

}  // namespace llmd::LLMD_ISA
