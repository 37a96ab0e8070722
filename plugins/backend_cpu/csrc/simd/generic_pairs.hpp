// Codes of keys and values in the generic unit: 16 lanes of 2, multiplied by pairs of int16.

#pragma once

namespace llmd::LLMD_ISA {

constexpr int kProductQueries = 2;
constexpr int kProductTile = 2;

struct CodePairs {
    int8_t bytes[32];
};
struct Pair {
    int32_t first, second;
};
struct Products {
    int32_t v[16];
};

LLMD_INLINE CodePairs load_codes(const int8_t* p) {
    CodePairs codes;
    std::memcpy(codes.bytes, p, sizeof codes.bytes);
    return codes;
}
LLMD_INLINE CodePairs load_low_codes(const uint8_t* p) {
    CodePairs codes;
    for (int i = 0; i < 32; ++i) codes.bytes[i] = static_cast<int8_t>(p[i] & 15);
    return codes;
}
LLMD_INLINE CodePairs load_high_codes(const uint8_t* p) {
    CodePairs codes;
    for (int i = 0; i < 32; ++i) codes.bytes[i] = static_cast<int8_t>(p[i] >> 4);
    return codes;
}
LLMD_INLINE Pair load_pair(const int16_t* p) { return {p[0], p[1]}; }
LLMD_INLINE Products no_products() { return {}; }
LLMD_INLINE Products add_products(Products sums, const CodePairs& codes, Pair pair) {
    for (int i = 0; i < 16; ++i) {
        sums.v[i] += codes.bytes[2 * i] * pair.first + codes.bytes[2 * i + 1] * pair.second;
    }
    return sums;
}
template <int kPart>
LLMD_INLINE Vec to_float(const Products& a) {
    IntLanes part;
    std::memcpy(&part, a.v + 4 * kPart, sizeof part);
    return {__builtin_convertvector(part, Lanes)};
}
// Lanes i and i ^ kDistance of each other.
template <int kDistance>
LLMD_INLINE Vec swap_lanes(Vec a) {
    return {Lanes{a.v[kDistance], a.v[1 ^ kDistance], a.v[2 ^ kDistance], a.v[3 ^ kDistance]}};
}
// Rounds to nearest even; |x| < 2^15.
LLMD_INLINE void store_int16(int16_t* p, Vec a) {
    const IntLanes words = to_int(round(a));
    for (int i = 0; i < 4; ++i) p[i] = static_cast<int16_t>(words[i]);
}

}  // namespace llmd::LLMD_ISA
