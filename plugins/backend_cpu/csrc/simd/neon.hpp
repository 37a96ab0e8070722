// The vector type of the NEON unit (armv8.2-a with dotprod): 4 float32 lanes, signed int8 dot products.

#pragma once

#include <arm_neon.h>

#include "simd/elements.hpp"

namespace llmd::LLMD_ISA {

struct Vec {
    static constexpr int kLanes = 4;
    float32x4_t v;
};

LLMD_INLINE Vec set1(float x) { return {vdupq_n_f32(x)}; }
LLMD_INLINE Vec load(const float* p) { return {vld1q_f32(p)}; }
LLMD_INLINE Vec load(const F16* p) {
    return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))))};
}
LLMD_INLINE Vec load(const BF16* p) {
    return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p)), 16))};
}
LLMD_INLINE Vec load(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    const int16x8_t halves = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(quad)));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves)))};
}
template <class Element>
LLMD_INLINE Vec load_n(const Element* p, int n) {
    Element first[4] = {};
    std::memcpy(first, p, sizeof(Element) * static_cast<size_t>(n));
    return load(first);
}
LLMD_INLINE void store(float* p, Vec a) { vst1q_f32(p, a.v); }
LLMD_INLINE void store_n(float* p, Vec a, int n) {
    float all[4];
    vst1q_f32(all, a.v);
    std::memcpy(p, all, sizeof(float) * static_cast<size_t>(n));
}
LLMD_INLINE void store(F16* p, Vec a) {
    vst1_u16(reinterpret_cast<uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(a.v)));
}
LLMD_INLINE void store(BF16* p, Vec a) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a.v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    // Adding to the bits of a NaN could carry into its sign.
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t number = vceqq_f32(a.v, a.v);
    vst1_u16(reinterpret_cast<uint16_t*>(p), vshrn_n_u32(vbslq_u32(number, rounded, quiet), 16));
}
// Lanes must be integers in -128..127.
LLMD_INLINE void store_int8(int8_t* p, Vec a) {
    const int16x4_t halves = vmovn_s32(vcvtnq_s32_f32(a.v));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    std::memcpy(p, &bytes, 4);
}

LLMD_INLINE Vec operator+(Vec a, Vec b) { return {vaddq_f32(a.v, b.v)}; }
LLMD_INLINE Vec operator-(Vec a, Vec b) { return {vsubq_f32(a.v, b.v)}; }
LLMD_INLINE Vec operator*(Vec a, Vec b) { return {vmulq_f32(a.v, b.v)}; }
LLMD_INLINE Vec operator/(Vec a, Vec b) { return {vdivq_f32(a.v, b.v)}; }
LLMD_INLINE Vec fma(Vec a, Vec b, Vec c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
LLMD_INLINE Vec max(Vec a, Vec b) { return {vmaxq_f32(a.v, b.v)}; }
LLMD_INLINE Vec min(Vec a, Vec b) { return {vminq_f32(a.v, b.v)}; }
LLMD_INLINE Vec abs(Vec a) { return {vabsq_f32(a.v)}; }
LLMD_INLINE Vec sqrt(Vec a) { return {vsqrtq_f32(a.v)}; }
LLMD_INLINE Vec round(Vec a) { return {vrndnq_f32(a.v)}; }
LLMD_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
    return {vbslq_f32(vcltq_f32(a.v, b.v), yes.v, no.v)};
}
LLMD_INLINE bool any_greater(Vec a, Vec b) { return vmaxvq_u32(vcgtq_f32(a.v, b.v)) != 0; }
LLMD_INLINE Vec power_of_two(Vec a) {
    const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(a.v), vdupq_n_s32(127));
    return {vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23))};
}
LLMD_INLINE float sum(Vec a) { return vaddvq_f32(a.v); }
LLMD_INLINE float largest(Vec a) { return vmaxvq_f32(a.v); }

// Int8 panels: 16 output rows, 4 inputs of each; four registers of four rows.
constexpr int kWeightBias = 0;
constexpr int kQ8RowTile = 3;
constexpr int kQ8PanelTile = 1;
constexpr int kPlainRowTile = 4;
constexpr int kFloatTile = 24;

struct Record {
    int8x16_t bytes[4];
};
struct Inputs {
    int8x16_t quads;  // the same 4 inputs in every lane
};
struct Sums {
    int32x4_t v[4];
};

LLMD_INLINE Record load_record(const uint8_t* p) {
    const auto* bytes = reinterpret_cast<const int8_t*>(p);
    return {{vld1q_s8(bytes), vld1q_s8(bytes + 16), vld1q_s8(bytes + 32), vld1q_s8(bytes + 48)}};
}
LLMD_INLINE Sums set_sums(int32_t x) {
    return {{vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x)}};
}
LLMD_INLINE Sums add(Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) a.v[i] = vaddq_s32(a.v[i], b.v[i]);
    return a;
}
LLMD_INLINE Inputs load_inputs(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    return {vreinterpretq_s8_s32(vdupq_n_s32(quad))};
}
LLMD_INLINE Sums dot(Sums sums, Record weights, Inputs inputs) {
    for (int i = 0; i < 4; ++i) sums.v[i] = vdotq_s32(sums.v[i], weights.bytes[i], inputs.quads);
    return sums;
}
template <int kPart>
LLMD_INLINE Vec to_float(Sums a) {
    return {vcvtq_f32_s32(a.v[kPart])};
}

}  // namespace llmd::LLMD_ISA
