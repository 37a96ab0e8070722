// float16 and bf16 conversion for units without instructions for it.

#pragma once

#include "simd/elements.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE float from_bits(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
LLMD_INLINE uint32_t to_bits(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

LLMD_INLINE float widen(BF16 x) { return from_bits(static_cast<uint32_t>(x.bits) << 16); }

// Exact. Subnormals are converted from an integer, because workers treat float32 subnormals as zero.
LLMD_INLINE float widen(F16 x) {
    const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16;
    const uint32_t exponent = (x.bits >> 10) & 31U;
    const uint32_t fraction = x.bits & 1023U;
    if (exponent == 0) {
        const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
        return from_bits(sign | to_bits(magnitude));
    }
    const uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
    return from_bits(sign | wide << 23 | fraction << 13);
}

LLMD_INLINE float widen(E4M3 x) {
    const int32_t extended = static_cast<int8_t>(x.bits);
    return widen(F16{static_cast<uint16_t>((static_cast<uint32_t>(extended) << kE4M3Shift) & kE4M3Mask)});
}

// Rounds to nearest even. Rounding the bits of a NaN could carry into its sign, so NaN is truncated.
LLMD_INLINE BF16 narrow_bf16(float x) {
    const uint32_t bits = to_bits(x);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    const uint32_t rounded = nan ? bits | 0x400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
    return {static_cast<uint16_t>(rounded >> 16)};
}

// Rounds to nearest even; values that round beyond 65504 become infinite, as in IEEE 754.
LLMD_INLINE F16 narrow(float x) {
    const uint32_t bits = to_bits(x);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
    const uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return {static_cast<uint16_t>(sign | 0x7e00U)};  // NaN
    if (magnitude >= 0x477ff000U) return {static_cast<uint16_t>(sign | 0x7c00U)};
    if (magnitude <
        0x38800000U) {  // subnormal: adding 0.5 aligns the fraction so that the addition rounds it
        const float aligned = from_bits(magnitude) + 0.5F;
        return {static_cast<uint16_t>(sign | (to_bits(aligned) - to_bits(0.5F)))};
    }
    const uint32_t odd = (magnitude >> 13) & 1U;
    return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13))};
}

}  // namespace llmd::LLMD_ISA
