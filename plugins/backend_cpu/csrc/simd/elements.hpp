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

}  // namespace llmd
