// The values of int4 keys and values: a group of 32 elements has 32 levels and shares a scale of 8 bits.
//
//   level    kBook[code] / 64 of the scale; levels are further apart further out, where numbers are rarer
//   scale    the upper 8 bits of a float16 without its sign; negative at odd positions, which mirrors the
//            levels, so that equal heads at two positions have different errors
//   codes    5 bits. The lowest bits of elements e, e + 1, e + 16 and e + 17 (e even) have an even sum,
//            and the last of them is not stored. Codes are points of the lattice D4.
//   from     Conway & Sloane 1982, "Fast Quantizing and Decoding Algorithms for Lattice Quantizers and
//            Codes"

#pragma once

#include <cstdint>

namespace llmd {

constexpr int kLevels = 32;
constexpr float kBookScale = 64.0F;
// The same as llmd.api.kv.KV_BOOK.
constexpr int8_t kBook[kLevels] = {-120, -107, -94, -83, -73, -64, -55, -47, -40, -33, -27,
                                   -22,  -16,  -11, -6,  -1,  4,   9,   14,  19,  24,  30,
                                   37,   44,   51,  59,  68,  78,  89,  100, 113, 127};

// For a number on the scale of the levels: its nearest code and that code's squared distance, the nearer
// of the two neighbouring codes, and how much larger its squared distance is.
struct NearCodes {
    uint8_t code;
    uint8_t other;
    int16_t square;
    int16_t detour;
};

constexpr int kReach = 255;  // elements are clamped to this

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

// The book in the order of kernel lookups: by half the code, then by its lowest bit.
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
