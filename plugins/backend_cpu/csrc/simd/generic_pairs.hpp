// Codes of keys and values in the generic unit: 16 lanes of 2, multiplied by pairs of int16.

#pragma once

#include "kv_book.hpp"
#include "kv_layout.hpp"

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
// The lowest bits of the codes of a group, in 32 lanes: first those of the next codes, then those of later
// codes.
struct LowBits {
    uint8_t bytes[32];  // from bit 0 on
};
// Loads the lowest bits for the first or second half of a group. In the second half, elements `kDistance`
// lanes apart share a stored bit.
template <int kDistance, bool kSecond>
LLMD_INLINE LowBits load_low_bits(const uint8_t* p) {
    LowBits bits;
    std::memcpy(bits.bytes, p, sizeof bits.bytes);
    if constexpr (!kSecond) return bits;
    const uint8_t* few = p + kFewBitsAt;
    for (int i = 0; i < 32; i += 2 * kDistance) {
        for (int j = i; j < i + kDistance; ++j) {
            const uint8_t kept = *few++;
            bits.bytes[j + kDistance] ^= static_cast<uint8_t>(bits.bytes[j] ^ kept);
            bits.bytes[j] = kept;
        }
    }
    return bits;
}
LLMD_INLINE LowBits next(LowBits bits) {
    for (uint8_t& byte : bits.bytes) byte = static_cast<uint8_t>(byte >> 1);
    return bits;
}

// Scales of int4 (kv_book.hpp), negative in odd lanes.
LLMD_INLINE Vec load_byte_scales(const uint8_t* p) {
    F16 scales[4];
    for (int i = 0; i < 4; ++i) scales[i].bits = static_cast<uint16_t>(p[i] << 7 | i % 2 << 15);
    return load(scales);
}

struct KvBook {};
LLMD_INLINE KvBook load_kv_book() { return {}; }
LLMD_INLINE CodePairs look_up_low(const KvBook&, const uint8_t* p, const LowBits& bits) {
    CodePairs codes;
    for (int i = 0; i < 32; ++i) codes.bytes[i] = kBookBytes.at[(p[i] & 15) + (bits.bytes[i] & 1) * 16];
    return codes;
}
LLMD_INLINE CodePairs look_up_high(const KvBook&, const uint8_t* p, const LowBits& bits) {
    CodePairs codes;
    for (int i = 0; i < 32; ++i) codes.bytes[i] = kBookBytes.at[(p[i] >> 4) + (bits.bytes[i] & 1) * 16];
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
// Swaps lanes i and i ^ kDistance.
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
