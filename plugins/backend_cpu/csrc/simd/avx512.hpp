// The vector type of the AVX-512 unit: 16 float32 lanes, masked tails, VNNI dot products.
//
// Every unit defines the same names (../README.md lists them); the ops are written against those alone.

#pragma once

// g++ 12 takes the deliberately undefined operands of its own header for mistakes (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "simd/elements.hpp"

namespace llmd::LLMD_ISA {

struct Vec {
    static constexpr int kLanes = 16;
    __m512 v;
};

LLMD_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1U << n) - 1U); }

LLMD_INLINE Vec set1(float x) { return {_mm512_set1_ps(x)}; }
LLMD_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
LLMD_INLINE Vec load(const F16* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LLMD_INLINE Vec load(const BF16* p) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16))};
}
LLMD_INLINE Vec load(const int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
LLMD_INLINE Vec load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
LLMD_INLINE Vec load_n(const F16* p, int n) {
    return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p))};
}
LLMD_INLINE Vec load_n(const BF16* p, int n) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(n), p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16))};
}
LLMD_INLINE void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
LLMD_INLINE void store_n(float* p, Vec a, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
LLMD_INLINE void store(F16* p, Vec a) {
    const __m256i bits = _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
}
LLMD_INLINE void store(BF16* p, Vec a) {
    const __m512i bits = _mm512_castps_si512(a.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    // Adding to the bits of a NaN could carry into its sign.
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
    const __m512i upper = _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(upper));
}
// Lanes must be integers in -128..127.
LLMD_INLINE void store_int8(int8_t* p, Vec a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

LLMD_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
LLMD_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
LLMD_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
LLMD_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
LLMD_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
LLMD_INLINE Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
LLMD_INLINE Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
LLMD_INLINE Vec abs(Vec a) { return {_mm512_abs_ps(a.v)}; }
LLMD_INLINE Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
LLMD_INLINE Vec round(Vec a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
LLMD_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
LLMD_INLINE bool any_greater(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ) != 0; }
LLMD_INLINE Vec power_of_two(Vec a) {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(a.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
}
LLMD_INLINE float sum(Vec a) { return _mm512_reduce_add_ps(a.v); }
LLMD_INLINE float largest(Vec a) { return _mm512_reduce_max_ps(a.v); }

// Int8 panels: 16 output rows, 4 inputs of each in a lane. The weight is the unsigned operand, stored with
// 128 added.
constexpr int kWeightBias = 128;
constexpr int kQ8RowTile = 8;
constexpr int kQ8PanelTile = 2;
constexpr int kPlainRowTile = 6;
constexpr int kFloatTile = 24;

struct Record {
    __m512i bytes;
};
struct Inputs {
    __m512i quads;  // the same 4 inputs in every lane
};
struct Sums {
    __m512i v;
};

LLMD_INLINE Record load_record(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
LLMD_INLINE Sums set_sums(int32_t x) { return {_mm512_set1_epi32(x)}; }
LLMD_INLINE Sums add(Sums a, Sums b) { return {_mm512_add_epi32(a.v, b.v)}; }
LLMD_INLINE Inputs load_inputs(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    return {_mm512_set1_epi32(quad)};
}
LLMD_INLINE Sums dot(Sums sums, Record weights, Inputs inputs) {
    // As an intrinsic, g++ 12 copies every accumulator around it and halves the speed of a tile.
    asm("vpdpbusd %2, %1, %0" : "+v"(sums.v) : "v"(weights.bytes), "v"(inputs.quads));
    return sums;
}
template <int kPart>
LLMD_INLINE Vec to_float(Sums a) {
    static_assert(kPart == 0);
    return {_mm512_cvtepi32_ps(a.v)};
}

}  // namespace llmd::LLMD_ISA
