// What int4 keys and values stand for: 32 levels of a group of 32 elements, which share a scale of 8 bits.
//
//   level    kBook[code] / 64 of the scale; steps grow outwards, as the density of what is rounded falls
//   scale    the upper 8 bits of a half-precision number without its sign; of odd positions it is negative,
//   and
//            levels lie otherwise there, so that equal heads at two positions have unequal errors
//   codes    5 bits, of which elements e, e + 1, e + 16 and e + 17 (e even) have lowest bits whose sum is
//   even:
//            the last of them is not kept. Codes are points of the lattice D4.
//   from     Conway & Sloane 1982, "Fast Quantizing and Decoding Algorithms for Lattice Quantizers and Codes"

#pragma once

#include <cstdint>

namespace llmd {

constexpr int kLevels = 32;
constexpr float kBookScale = 64.0F;
// llmd.api.kv.KV_BOOK.
constexpr int8_t kBook[kLevels] = {-120, -107, -94, -83, -73, -64, -55, -47, -40, -33, -27,
                                   -22,  -16,  -11, -6,  -1,  4,   9,   14,  19,  24,  30,
                                   37,   44,   51,  59,  68,  78,  89,  100, 113, 127};

// A number in the units of levels: its nearest code, the nearest of the two beside that one, and the squared
// distance of the first, and how much further the second is.
struct NearCodes {
    uint8_t code;
    uint8_t other;
    int16_t square;
    int16_t detour;
};

constexpr int kReach = 255;  // no element is further out than that

struct NearestCodes {
    NearCodes at[2 * kReach + 1];
};

constexpr NearestCodes nearest_codes() {
    NearestCodes table{};
    for (int x = -kReach; x <= kReach; ++x) {
        const auto square = [x](int code) { return (x - kBook[code]) * (x - kBook[code]); };
        int code = 0;
        for (int i = 1; i < kLevels; ++i) {
            if (square(i) < square(code)) code = i;
        }
        const bool up = code == 0 || (code + 1 < kLevels && square(code + 1) < square(code - 1));
        const int other = up ? code + 1 : code - 1;
        table.at[x + kReach] = {static_cast<uint8_t>(code), static_cast<uint8_t>(other),
                                static_cast<int16_t>(square(code)),
                                static_cast<int16_t>(square(other) - square(code))};
    }
    return table;
}

constexpr NearestCodes kNearest = nearest_codes();

// The book in the order that kernels look it up: halves of codes, then their lowest bit.
struct BookBytes {
    int8_t at[kLevels];
};
constexpr BookBytes book_bytes() {
    BookBytes bytes{};
    for (int code = 0; code < kLevels; ++code) bytes.at[code / 2 + code % 2 * 16] = kBook[code];
    return bytes;
}
constexpr BookBytes kBookBytes = book_bytes();

}  // namespace llmd
