// Codes of keys and values in the AVX2 unit: 16 lanes of 2, multiplied by pairs of int16.

#pragma once

#include "kv_book.hpp"
#include "kv_layout.hpp"

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
// The lowest bits of the codes of a group, in 32 lanes: first those of the next codes, then those of later
// codes.
struct LowBits {
    __m256i bytes;  // from bit 0 on
};
// Loads the lowest bits for the first or second half of a group. In the second half, elements `kDistance`
// lanes apart share a stored bit.
template <int kDistance, bool kSecond>
LLMD_INLINE LowBits load_low_bits(const uint8_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    if constexpr (!kSecond) return {bits};
    const __m128i few = load_16(p + kFewBitsAt);
    if constexpr (kDistance == 1) {
        const __m256i kept = _mm256_cvtepu8_epi16(few);
        const __m256i sum = _mm256_xor_si256(_mm256_xor_si256(bits, _mm256_srli_epi16(bits, 8)), kept);
        return {_mm256_or_si256(kept, _mm256_slli_epi16(sum, 8))};
    } else {
        const __m256i kept = _mm256_cvtepu16_epi32(few);
        const __m256i sum = _mm256_xor_si256(_mm256_xor_si256(bits, _mm256_srli_epi32(bits, 16)), kept);
        return {_mm256_or_si256(kept, _mm256_slli_epi32(sum, 16))};
    }
}
// After n calls, the lowest 8 - n bits of a byte are still its own.
LLMD_INLINE LowBits next(LowBits bits) { return {_mm256_srli_epi16(bits.bytes, 1)}; }

// Scales of int4 (kv_book.hpp), negative in odd lanes.
LLMD_INLINE Vec load_byte_scales(const uint8_t* p) {
    const __m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const __m128i signs = _mm_set1_epi32(static_cast<int32_t>(0x80000000U));
    return {_mm256_cvtph_ps(_mm_or_si128(_mm_slli_epi16(bytes, 7), signs))};
}

struct KvBook {
    __m256i even, odd;  // levels of codes with lowest bit 0, and 1
};
LLMD_INLINE KvBook load_kv_book() {
    return {_mm256_broadcastsi128_si256(load_16(kBookBytes.at)),
            _mm256_broadcastsi128_si256(load_16(kBookBytes.at + 16))};
}
LLMD_INLINE CodePairs look_up(const KvBook& book, __m256i halves, LowBits bits) {
    const __m256i codes = _mm256_and_si256(halves, _mm256_set1_epi8(15));
    const __m256i levels =
        _mm256_blendv_epi8(_mm256_shuffle_epi8(book.even, codes), _mm256_shuffle_epi8(book.odd, codes),
                           _mm256_slli_epi16(bits.bytes, 7));
    return {_mm256_cvtepi8_epi16(_mm256_castsi256_si128(levels)),
            _mm256_cvtepi8_epi16(_mm256_extracti128_si256(levels, 1))};
}
LLMD_INLINE CodePairs look_up_low(const KvBook& book, const uint8_t* p, LowBits bits) {
    return look_up(book, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), bits);
}
LLMD_INLINE CodePairs look_up_high(const KvBook& book, const uint8_t* p, LowBits bits) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return look_up(book, _mm256_srli_epi16(bytes, 4), bits);
}
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
// Swaps lanes i and i ^ kDistance.
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
