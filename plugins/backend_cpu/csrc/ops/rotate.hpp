// rotate: an orthonormal Hadamard transform of a head, its own inverse
//
//   x      [count]  f32, in place
//   blocks of the largest powers of two, largest first (96 is 64 and 32): each becomes H x / sqrt(n), with H
//          in the order of Sylvester's construction
//   order  butterflies over distances 1, 2, 4, …, each sum rounded to f32; then one product with
//          f32(1 / sqrt(n))
//   check  equal to llmd.builtin.reference.rotation   (tests/plugins/backend_cpu/test_device.py)
//   from   Ashkboos et al. 2024, "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs"

#pragma once

#include <cmath>

namespace llmd::LLMD_ISA {

LLMD_INLINE void rotate(float* x, int64_t count) {
    for (int64_t first = 0, size = 1; first < count; first += size) {
        for (size = 1; 2 * size <= count - first;) size *= 2;
        float* block = x + first;
        for (int64_t distance = 1; distance < size; distance *= 2) {
            for (int64_t i = 0; i < size; i += 2 * distance) {
                for (int64_t j = i; j < i + distance; ++j) {
                    const float a = block[j];
                    const float b = block[j + distance];
                    block[j] = a + b;
                    block[j + distance] = a - b;
                }
            }
        }
        const auto factor = static_cast<float>(1.0 / ::sqrt(static_cast<double>(size)));
        for (int64_t i = 0; i < size; ++i) block[i] *= factor;
    }
}

}  // namespace llmd::LLMD_ISA
