// Spreads the fine scales of the 16 rows of a panel over a record, in which each row has 4 bytes.

#pragma once

#include <cstdint>

namespace llmd::LLMD_ISA {

// Operands of a shuffle that picks one of 16 bytes; 128 gives 0.
struct Places {
    alignas(64) uint8_t bytes[64];
};

template <class F>
constexpr Places places_of(F&& f) {
    Places places = {};
    for (int i = 0; i < 64; ++i) places.bytes[i] = static_cast<uint8_t>(f(i / 4, i % 2));
    return places;
}

inline constexpr Places kRowEverywhere = places_of([](int row, int) { return row; });
// In the lower byte of 16 bits, so that a 16-bit product multiplies two bytes.
inline constexpr Places kRowInWords = places_of([](int row, int upper) { return upper != 0 ? 128 : row; });
inline constexpr Places kPairInWords =
    places_of([](int row, int upper) { return upper != 0 ? 128 : row / 2; });

}  // namespace llmd::LLMD_ISA
