// Converts to and from float16 with NumPy's rounding, on processors without the instructions. For scales.
//
//   check  bit for bit equal to llmd.models.formats.float16
//          (tests/plugins/backend_cpu/test_quantizer.py)

#pragma once

#include <bit>
#include <cstdint>

namespace llmd {

constexpr uint16_t kInfiniteFloat16 = 0x7C00;

inline bool is_finite_float16(uint16_t bits) { return (bits & kInfiniteFloat16) != kInfiniteFloat16; }

// Infinite and NaN bits both become infinite.
inline float from_float16(uint16_t bits) {
    const float value = std::bit_cast<float>((bits & 0x7FFFU) << 13) * 0x1p112F;
    const uint32_t magnitude = value < 65536.0F ? std::bit_cast<uint32_t>(value) : 0x7F800000U;
    return std::bit_cast<float>(magnitude | (bits & 0x8000U) << 16);
}

// Rounds finite numbers to the nearest, ties to even.
inline uint16_t to_float16(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
    const uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude >= 0x477FF000U) return sign | kInfiniteFloat16;  // 65520 and above
    if (magnitude < 0x38800000U) {                                 // below 2^-14: multiples of 2^-24
        // From 0.5 to 1, the last bit of a float32 counts 2^-24.
        const float units = std::bit_cast<float>(magnitude) + 0.5F;
        return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(units) - 0x3F000000U);
    }
    const uint32_t rounded = magnitude + 0xFFFU + (magnitude >> 13 & 1U);
    return sign | static_cast<uint16_t>((rounded >> 13) - (112U << 10));
}

// The next larger number, for numbers that are not negative.
inline uint16_t next_float16(uint16_t bits) { return (bits & 0x7FFFU) == 0 ? 1 : bits + 1; }

// The smallest float16 that is at least `number`, which must not be negative.
inline uint16_t float16_from(float number) {
    const uint16_t rounded = to_float16(number);
    return from_float16(rounded) < number ? next_float16(rounded) : rounded;
}

}  // namespace llmd
