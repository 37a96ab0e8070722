// Codes of keys and values in the NEON unit: 16 lanes of 2, multiplied by pairs of int16.

#pragma once

#include "kv_book.hpp"
#include "kv_layout.hpp"

namespace llmd::LLMD_ISA {

constexpr int kProductQueries = 4;
constexpr int kProductTile = 6;

struct CodePairs {
    int16x8_t even[2], odd[2];  // first and second number of 8 lanes each
};
struct Pair {
    int16x4_t words;
};
struct Products {
    int32x4_t v[4];
};

LLMD_INLINE CodePairs widen(int8x16_t even, int8x16_t odd) {
    return {{vmovl_s8(vget_low_s8(even)), vmovl_s8(vget_high_s8(even))},
            {vmovl_s8(vget_low_s8(odd)), vmovl_s8(vget_high_s8(odd))}};
}
LLMD_INLINE CodePairs load_codes(const int8_t* p) {
    const int8x16x2_t bytes = vld2q_s8(p);
    return widen(bytes.val[0], bytes.val[1]);
}
// The lowest bits of the codes of a group, in 32 lanes: first those of the next codes, then those of later
// codes.
struct LowBits {
    uint8x16_t even, odd;  // lanes, from bit 0 on
};
// Loads the lowest bits for the first or second half of a group. In the second half, elements `kDistance`
// lanes apart share a stored bit.
template <int kDistance, bool kSecond>
LLMD_INLINE LowBits load_low_bits(const uint8_t* p) {
    const uint8x16x2_t bits = vld2q_u8(p);
    const uint8x16_t even = bits.val[0];
    const uint8x16_t odd = bits.val[1];
    if constexpr (!kSecond) return {even, odd};
    const uint8x16_t few = vld1q_u8(p + kFewBitsAt);
    if constexpr (kDistance == 1) return {few, veorq_u8(few, veorq_u8(even, odd))};
    // Lanes alternate between two tokens: the bits of one token are adjacent.
    const auto fill = [](uint8x16_t all, uint8x16_t kept) LLMD_LAMBDA {
        const uint8x16_t sum = veorq_u8(kept, veorq_u8(vuzp1q_u8(all, all), vuzp2q_u8(all, all)));
        return vzip1q_u8(kept, sum);
    };
    return {fill(even, vuzp1q_u8(few, few)), fill(odd, vuzp2q_u8(few, few))};
}
LLMD_INLINE LowBits next(LowBits bits) { return {vshrq_n_u8(bits.even, 1), vshrq_n_u8(bits.odd, 1)}; }

// Scales of int4 (kv_book.hpp), negative in odd lanes.
LLMD_INLINE Vec load_byte_scales(const uint8_t* p) {
    F16 scales[4];
    for (int i = 0; i < 4; ++i) scales[i].bits = static_cast<uint16_t>(p[i] << 7 | i % 2 << 15);
    return load(scales);
}

struct KvBook {
    int8x16x2_t levels;
};
LLMD_INLINE KvBook load_kv_book() { return {{vld1q_s8(kBookBytes.at), vld1q_s8(kBookBytes.at + 16)}}; }
LLMD_INLINE int8x16_t look_up(const KvBook& book, uint8x16_t halves, uint8x16_t bits) {
    return vqtbl2q_s8(book.levels, vandq_u8(vsliq_n_u8(halves, bits, 4), vdupq_n_u8(31)));
}
LLMD_INLINE CodePairs look_up_low(const KvBook& book, const uint8_t* p, LowBits bits) {
    const uint8x16x2_t bytes = vld2q_u8(p);
    return widen(look_up(book, bytes.val[0], bits.even), look_up(book, bytes.val[1], bits.odd));
}
LLMD_INLINE CodePairs look_up_high(const KvBook& book, const uint8_t* p, LowBits bits) {
    const uint8x16x2_t bytes = vld2q_u8(p);
    return widen(look_up(book, vshrq_n_u8(bytes.val[0], 4), bits.even),
                 look_up(book, vshrq_n_u8(bytes.val[1], 4), bits.odd));
}
LLMD_INLINE Pair load_pair(const int16_t* p) {
    int32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    return {vreinterpret_s16_s32(vdup_n_s32(pair))};
}
LLMD_INLINE Products no_products() {
    return {{vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)}};
}
LLMD_INLINE Products add_products(Products sums, const CodePairs& codes, Pair pair) {
    for (int i = 0; i < 2; ++i) {
        sums.v[2 * i] = vmlal_lane_s16(sums.v[2 * i], vget_low_s16(codes.even[i]), pair.words, 0);
        sums.v[2 * i] = vmlal_lane_s16(sums.v[2 * i], vget_low_s16(codes.odd[i]), pair.words, 1);
        sums.v[2 * i + 1] = vmlal_lane_s16(sums.v[2 * i + 1], vget_high_s16(codes.even[i]), pair.words, 0);
        sums.v[2 * i + 1] = vmlal_lane_s16(sums.v[2 * i + 1], vget_high_s16(codes.odd[i]), pair.words, 1);
    }
    return sums;
}
template <int kPart>
LLMD_INLINE Vec to_float(const Products& a) {
    return {vcvtq_f32_s32(a.v[kPart])};
}
// Swaps lanes i and i ^ kDistance.
template <int kDistance>
LLMD_INLINE Vec swap_lanes(Vec a) {
    if constexpr (kDistance == 1) return {vrev64q_f32(a.v)};
    return {vextq_f32(a.v, a.v, 2)};
}
// Rounds to nearest even; |x| < 2^15.
LLMD_INLINE void store_int16(int16_t* p, Vec a) { vst1_s16(p, vmovn_s32(vcvtnq_s32_f32(a.v))); }

}  // namespace llmd::LLMD_ISA
