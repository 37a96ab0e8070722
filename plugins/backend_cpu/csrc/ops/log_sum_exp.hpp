// log_sum_exp: log sum_i e^(z_i * inverse_temperature)
//
//   z  [count]  f32, -inf for excluded entries; the result is -inf if all are
//   order  partial sums of 4096 entries in f32, one per lane; those in float64, ascending
//   check  absolute error < 1e-5   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include <cmath>

namespace llmd::LLMD_ISA {

LLMD_INLINE float largest_of(const float* z, int64_t count) {
    Vec top = set1(-__builtin_inff());
    int64_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) top = max(top, load(z + i));
    float result = largest(top);
    for (; i < count; ++i) result = z[i] > result ? z[i] : result;
    return result;
}

LLMD_INLINE float sum_of_exponentials(const float* z, int64_t count, float top, float inverse_temperature) {
    const Vec center = set1(top);
    const Vec factor = set1(inverse_temperature);
    Vec total = set1(0.0F);
    int64_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) total = total + exp((load(z + i) - center) * factor);
    if (i == count) return sum(total);
    float rest[Vec::kLanes];
    for (int j = 0; j < Vec::kLanes; ++j) rest[j] = i + j < count ? z[i + j] : -__builtin_inff();
    return sum(total + exp((load(rest) - center) * factor));
}

LLMD_INLINE float log_sum_exp(const float* z, int64_t count, float inverse_temperature) {
    constexpr int64_t kPiece = 4096;
    const float top = largest_of(z, count);
    if (top == -__builtin_inff()) return top;
    double total = 0.0;
    for (int64_t first = 0; first < count; first += kPiece) {
        const int64_t piece = count - first < kPiece ? count - first : kPiece;
        total += static_cast<double>(sum_of_exponentials(z + first, piece, top, inverse_temperature));
    }
    return static_cast<float>(static_cast<double>(top) * inverse_temperature + ::log(total));
}

}  // namespace llmd::LLMD_ISA
