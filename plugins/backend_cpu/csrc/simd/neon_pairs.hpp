// Codes of keys and values in the NEON unit: 16 lanes of 2, multiplied by pairs of int16.

#pragma once

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
LLMD_INLINE CodePairs load_low_codes(const uint8_t* p) {
    const uint8x16x2_t bytes = vld2q_u8(p);
    const uint8x16_t mask = vdupq_n_u8(15);
    return widen(vreinterpretq_s8_u8(vandq_u8(bytes.val[0], mask)),
                 vreinterpretq_s8_u8(vandq_u8(bytes.val[1], mask)));
}
LLMD_INLINE CodePairs load_high_codes(const uint8_t* p) {
    const uint8x16x2_t bytes = vld2q_u8(p);
    return widen(vreinterpretq_s8_u8(vshrq_n_u8(bytes.val[0], 4)),
                 vreinterpretq_s8_u8(vshrq_n_u8(bytes.val[1], 4)));
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
// Lanes i and i ^ kDistance of each other.
template <int kDistance>
LLMD_INLINE Vec swap_lanes(Vec a) {
    if constexpr (kDistance == 1) return {vrev64q_f32(a.v)};
    return {vextq_f32(a.v, a.v, 2)};
}
// Rounds to nearest even; |x| < 2^15.
LLMD_INLINE void store_int16(int16_t* p, Vec a) { vst1_s16(p, vmovn_s32(vcvtnq_s32_f32(a.v))); }

}  // namespace llmd::LLMD_ISA
