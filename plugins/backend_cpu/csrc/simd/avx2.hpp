// The vector type of the AVX2 unit: 8 float32 lanes, FMA, F16C. Its integers are in
// simd/avx2_integers.hpp.

#pragma once

#include <immintrin.h>

#include "simd/elements.hpp"

namespace llmd::LLMD_ISA {

struct Vec {
    static constexpr int kLanes = 8;
    __m256 v;
};

LLMD_INLINE __m256i first_lanes(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LLMD_INLINE __m128i load_bits_n(const void* p, int n) {
    alignas(16) uint16_t bits[8] = {};
    std::memcpy(bits, p, 2 * static_cast<size_t>(n));
    return _mm_load_si128(reinterpret_cast<const __m128i*>(bits));
}
LLMD_INLINE __m256 widen_e4m3(__m128i bytes) {
    const __m128i extended = _mm_slli_epi16(_mm_cvtepi8_epi16(bytes), kE4M3Shift);
    return _mm256_cvtph_ps(_mm_and_si128(extended, _mm_set1_epi16(static_cast<int16_t>(kE4M3Mask))));
}
LLMD_INLINE __m256 widen_bf16(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

LLMD_INLINE Vec set1(float x) { return {_mm256_set1_ps(x)}; }
LLMD_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
LLMD_INLINE Vec load(const F16* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
LLMD_INLINE Vec load(const BF16* p) {
    return {widen_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
LLMD_INLINE Vec load(const E4M3* p) {
    return {widen_e4m3(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
LLMD_INLINE Vec load(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
}
LLMD_INLINE Vec load_n(const float* p, int n) { return {_mm256_maskload_ps(p, first_lanes(n))}; }
LLMD_INLINE Vec load_n(const F16* p, int n) { return {_mm256_cvtph_ps(load_bits_n(p, n))}; }
LLMD_INLINE Vec load_n(const BF16* p, int n) { return {widen_bf16(load_bits_n(p, n))}; }
LLMD_INLINE Vec load_n(const E4M3* p, int n) {
    E4M3 first[8] = {};
    std::memcpy(first, p, static_cast<size_t>(n));
    return load(first);
}
LLMD_INLINE void store(float* p, Vec a) { _mm256_storeu_ps(p, a.v); }
LLMD_INLINE void store_n(float* p, Vec a, int n) { _mm256_maskstore_ps(p, first_lanes(n), a.v); }
LLMD_INLINE void store(F16* p, Vec a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LLMD_INLINE void store(BF16* p, Vec a) {
    const __m256i bits = _mm256_castps_si256(a.v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    // Rounding the bits of a NaN could carry into its sign.
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
    const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    const __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}
// Rounds to nearest even; the result must be within -128..127.
LLMD_INLINE void store_int8(int8_t* p, Vec a) {
    const __m256i words = _mm256_cvtps_epi32(a.v);
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(halves, halves));
}

LLMD_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
LLMD_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
LLMD_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
LLMD_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
LLMD_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
LLMD_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
LLMD_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
LLMD_INLINE Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0F), a.v)}; }
LLMD_INLINE Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
LLMD_INLINE Vec round(Vec a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
LLMD_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
    return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
}
LLMD_INLINE bool any_greater(Vec a, Vec b) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)) != 0;
}
LLMD_INLINE Vec power_of_two(Vec a) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(a.v), _mm256_set1_epi32(127));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23))};
}
LLMD_INLINE float sum(Vec a) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
LLMD_INLINE float largest(Vec a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

constexpr int kPlainRowTile = 2;
constexpr int kFloatTile = 12;

}  // namespace llmd::LLMD_ISA
