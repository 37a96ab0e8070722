// Numbers of several weight groups side by side, in the vectors of four that every x86-64 and AArch64 CPU
// has.

#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace llmd {

using Lanes = float __attribute__((vector_size(16)));
using Bits = uint32_t __attribute__((vector_size(16)));
constexpr int kLanes = 4;
// Independent vectors, so that additions to one do not wait for the other.
constexpr int kWays = 2;
constexpr int kTile = kWays * kLanes;

// A value for each of eight groups.
template <class T>
struct Wide {
    T of[kWays];

    T& operator[](int way) { return of[way]; }
    const T& operator[](int way) const { return of[way]; }
};

inline Lanes all(float value) { return Lanes{value, value, value, value}; }

#if defined(__SSE2__)
inline Lanes larger(Lanes a, Lanes b) { return _mm_max_ps(a, b); }
inline Lanes smaller(Lanes a, Lanes b) { return _mm_min_ps(a, b); }
#elif defined(__ARM_NEON)
inline Lanes larger(Lanes a, Lanes b) { return vmaxq_f32(a, b); }
inline Lanes smaller(Lanes a, Lanes b) { return vminq_f32(a, b); }
#else
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
#endif

inline Lanes clip(Lanes value, Lanes least, Lanes most) { return smaller(larger(value, least), most); }

inline Lanes magnitude(Lanes value) { return (Lanes)((Bits)value & 0x7FFFFFFFU); }

// 1.5 * 2^23. Adding it to a number within +-2^22 rounds the number to an integer, ties to even, and
// leaves that integer in the lowest bits.
constexpr float kRounder = 12582912.0F;

inline Lanes nearest(Lanes value) { return (value + kRounder) - kRounder; }

inline Lanes whole_below(Lanes value) {
    const Lanes whole = nearest(value);
    return whole > value ? whole - 1.0F : whole;
}

// The lowest eight bits of an integer.
inline Bits byte_of(Lanes whole) { return (Bits)(whole + kRounder) & 255U; }

// 0 where the divisor is not positive.
inline Lanes ratio(Lanes numbers, Lanes divisors) {
    const auto some = divisors > 0.0F;
    return some ? numbers / (some ? divisors : all(1.0F)) : Lanes{};
}

}  // namespace llmd
