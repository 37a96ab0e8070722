// Codes of keys and values in the AVX-512 unit: 16 lanes of 2, multiplied by pairs of int16 with VNNI.

#pragma once

#include "kv_book.hpp"
#include "kv_layout.hpp"

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
// The lowest bits of the codes of a group, in 32 lanes: first those of the next codes, then those of later
// codes.
struct LowBits {
    __m512i words;  // from bit 4 on
};
// Loads the lowest bits for the first or second half of a group. In the second half, elements `kDistance`
// lanes apart share a stored bit.
template <int kDistance, bool kSecond>
LLMD_INLINE LowBits load_low_bits(const uint8_t* p) {
    __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    if constexpr (kSecond) {
        const __m128i few = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + kFewBitsAt));
        if constexpr (kDistance == 1) {
            const __m256i kept = _mm256_cvtepu8_epi16(few);
            const __m256i sum = _mm256_xor_si256(_mm256_xor_si256(bits, _mm256_srli_epi16(bits, 8)), kept);
            bits = _mm256_or_si256(kept, _mm256_slli_epi16(sum, 8));
        } else {
            const __m256i kept = _mm256_cvtepu16_epi32(few);
            const __m256i sum = _mm256_xor_si256(_mm256_xor_si256(bits, _mm256_srli_epi32(bits, 16)), kept);
            bits = _mm256_or_si256(kept, _mm256_slli_epi32(sum, 16));
        }
    }
    return {_mm512_slli_epi16(_mm512_cvtepu8_epi16(bits), 4)};
}
LLMD_INLINE LowBits next(LowBits bits) { return {_mm512_srli_epi16(bits.words, 1)}; }

// Scales of int4 (kv_book.hpp), negative in odd lanes.
LLMD_INLINE Vec load_byte_scales(const uint8_t* p) {
    const __m256i bytes = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256i signs = _mm256_set1_epi32(static_cast<int32_t>(0x80000000U));
    return {_mm512_cvtph_ps(_mm256_or_si256(_mm256_slli_epi16(bytes, 7), signs))};
}

struct KvBook {
    __m512i words;
};
LLMD_INLINE KvBook load_kv_book() {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(kBookBytes.at)))};
}
LLMD_INLINE CodePairs look_up(const KvBook& book, __m512i halves, LowBits bits) {
    // The upper bits of codes go to the low 4 bits, the others come from `bits`; the lookup reads 5 bits.
    const __m512i index = _mm512_ternarylogic_epi32(halves, _mm512_set1_epi16(15), bits.words, 0xe2);
    return {_mm512_permutexvar_epi16(index, book.words)};
}
LLMD_INLINE CodePairs look_up_low(const KvBook& book, const uint8_t* p, LowBits bits) {
    return look_up(book, _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), bits);
}
LLMD_INLINE CodePairs look_up_high(const KvBook& book, const uint8_t* p, LowBits bits) {
    const __m512i bytes = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return look_up(book, _mm512_srli_epi16(bytes, 4), bits);
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
// Swaps lanes i and i ^ kDistance.
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
