// Storage types of weights and KV, and macros that every vector header needs.

#pragma once

#include <cstdint>
#include <cstring>

#define LLMD_INLINE [[maybe_unused]] static inline __attribute__((always_inline))

#define LLMD_INLINE_MEMBER inline __attribute__((always_inline))

// Follows the parameters of a lambda that must be inlined.
#define LLMD_LAMBDA __attribute__((always_inline))

namespace llmd {

struct F16 {
    uint16_t bits;
};
struct BF16 {
    uint16_t bits;
};
// FP8 of type e4m3fn: a sign, 4 bits of exponent, 3 of fraction. Weights are checked to have no NaN.
struct E4M3 {
    uint8_t bits;
};

// Units load an E4M3 as the float16 with the same fields, which is smaller by this factor: its exponent is
// one bit longer. Through float16, because workers treat float32 subnormals as zero.
constexpr float kE4M3Factor = 256.0F;
constexpr int kE4M3Shift = 7;           // from the fields of an E4M3 to those of a float16
constexpr uint16_t kE4M3Mask = 0xbf80;  // the fields, after a shift that extends the sign

}  // namespace llmd
