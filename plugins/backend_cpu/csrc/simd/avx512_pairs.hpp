// Codes of keys and values in the AVX-512 unit: 16 lanes of 2, multiplied by pairs of int16 with VNNI.

#pragma once

namespace llmd::LLMD_ISA {

constexpr int kProductQueries = 8;
constexpr int kProductTile = 24;

struct CodePairs {
    __m512i words;
};
struct Pair {
    __m512i words;  // the same 2 numbers in every lane
};
struct Products {
    __m512i v;
};

LLMD_INLINE CodePairs load_codes(const int8_t* p) {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LLMD_INLINE CodePairs load_low_codes(const uint8_t* p) {
    const __m512i bytes = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_and_si512(bytes, _mm512_set1_epi16(15))};
}
LLMD_INLINE CodePairs load_high_codes(const uint8_t* p) {
    const __m512i bytes = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_srli_epi16(bytes, 4)};
}
LLMD_INLINE Pair load_pair(const int16_t* p) {
    int32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    return {_mm512_set1_epi32(pair)};
}
LLMD_INLINE Products no_products() { return {_mm512_setzero_si512()}; }
LLMD_INLINE Products add_products(Products sums, CodePairs codes, Pair pair) {
    // As an intrinsic, g++ 12 copies every accumulator around it.
    asm("vpdpwssd %2, %1, %0" : "+v"(sums.v) : "v"(codes.words), "v"(pair.words));
    return sums;
}
template <int kPart>
LLMD_INLINE Vec to_float(Products a) {
    static_assert(kPart == 0);
    return {_mm512_cvtepi32_ps(a.v)};
}
// Lanes i and i ^ kDistance of each other.
template <int kDistance>
LLMD_INLINE Vec swap_lanes(Vec a) {
    if constexpr (kDistance == 1) return {_mm512_permute_ps(a.v, 0xb1)};
    if constexpr (kDistance == 2) return {_mm512_permute_ps(a.v, 0x4e)};
    if constexpr (kDistance == 4) return {_mm512_shuffle_f32x4(a.v, a.v, 0xb1)};
    return {_mm512_shuffle_f32x4(a.v, a.v, 0x4e)};
}
// Rounds to nearest even; |x| < 2^15.
LLMD_INLINE void store_int16(int16_t* p, Vec a) {
    const __m256i words = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a.v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
}

}  // namespace llmd::LLMD_ISA
