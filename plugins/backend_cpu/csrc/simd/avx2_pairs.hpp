// Codes of keys and values in the AVX2 unit: 16 lanes of 2, multiplied by pairs of int16.

#pragma once

namespace llmd::LLMD_ISA {

constexpr int kProductQueries = 4;
constexpr int kProductTile = 6;

struct CodePairs {
    __m256i low, high;
};
struct Pair {
    __m256i words;  // the same 2 numbers in every lane
};
struct Products {
    __m256i low, high;
};

LLMD_INLINE __m128i load_16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
LLMD_INLINE CodePairs load_codes(const int8_t* p) {
    return {_mm256_cvtepi8_epi16(load_16(p)), _mm256_cvtepi8_epi16(load_16(p + 16))};
}
LLMD_INLINE __m256i low_codes(const uint8_t* p) {
    return _mm256_and_si256(_mm256_cvtepu8_epi16(load_16(p)), _mm256_set1_epi16(15));
}
LLMD_INLINE __m256i high_codes(const uint8_t* p) {
    return _mm256_srli_epi16(_mm256_cvtepu8_epi16(load_16(p)), 4);
}
LLMD_INLINE CodePairs load_low_codes(const uint8_t* p) { return {low_codes(p), low_codes(p + 16)}; }
LLMD_INLINE CodePairs load_high_codes(const uint8_t* p) { return {high_codes(p), high_codes(p + 16)}; }
LLMD_INLINE Pair load_pair(const int16_t* p) {
    int32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    return {_mm256_set1_epi32(pair)};
}
LLMD_INLINE Products no_products() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
LLMD_INLINE Products add_products(Products sums, CodePairs codes, Pair pair) {
    return {_mm256_add_epi32(sums.low, _mm256_madd_epi16(codes.low, pair.words)),
            _mm256_add_epi32(sums.high, _mm256_madd_epi16(codes.high, pair.words))};
}
template <int kPart>
LLMD_INLINE Vec to_float(Products a) {
    static_assert(kPart == 0 || kPart == 1);
    return {_mm256_cvtepi32_ps(kPart == 0 ? a.low : a.high)};
}
// Lanes i and i ^ kDistance of each other.
template <int kDistance>
LLMD_INLINE Vec swap_lanes(Vec a) {
    if constexpr (kDistance == 1) return {_mm256_permute_ps(a.v, 0xb1)};
    if constexpr (kDistance == 2) return {_mm256_permute_ps(a.v, 0x4e)};
    return {_mm256_permute2f128_ps(a.v, a.v, 1)};
}
// Rounds to nearest even; |x| < 2^15.
LLMD_INLINE void store_int16(int16_t* p, Vec a) {
    const __m256i words = _mm256_cvtps_epi32(a.v);
    const __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}

}  // namespace llmd::LLMD_ISA
