// Bytes of integer weights in two AVX2 registers: a record is 16 output rows by 4 inputs.

#pragma once

#include "simd/avx2.hpp"
#include "simd/row_places.hpp"

namespace llmd::LLMD_ISA {

struct Bytes {
    __m256i low, high;
};
struct Book {
    __m256i table;  // repeated in every 16 bytes
};
struct Quad {
    __m256i v;  // the same 4 inputs in every lane
};
struct Sums {
    __m256i low, high;
};

LLMD_INLINE Bytes load_bytes(const uint8_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
LLMD_INLINE void store_bytes(uint8_t* p, Bytes a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.high);
}
// Shifts bits down by kShift, or up if kShift is negative, and masks bits that cross into a neighbouring
// byte.
template <int kShift, int kMask>
LLMD_INLINE __m256i half_field(__m256i a) {
    if constexpr (kShift > 0) a = _mm256_srli_epi16(a, kShift);
    if constexpr (kShift < 0) a = _mm256_slli_epi16(a, -kShift);
    return _mm256_and_si256(a, _mm256_set1_epi8(kMask));
}
template <int kShift, int kMask>
LLMD_INLINE Bytes field(Bytes a) {
    return {half_field<kShift, kMask>(a.low), half_field<kShift, kMask>(a.high)};
}
template <int kShift, int kMask>
LLMD_INLINE Bytes with_field(Bytes base, Bytes a) {
    const Bytes more = field<kShift, kMask>(a);
    return {_mm256_or_si256(base.low, more.low), _mm256_or_si256(base.high, more.high)};
}
// Shifts bits down by `bits`. The caller masks bits that come from a neighbouring byte.
LLMD_INLINE Bytes shift_down(Bytes a, int bits) {
    const __m128i count = _mm_cvtsi32_si128(bits);
    return {_mm256_srl_epi16(a.low, count), _mm256_srl_epi16(a.high, count)};
}
LLMD_INLINE void zip_half(__m256i a, __m256i b, __m256i c, __m256i d, __m256i (&to)[4]) {
    const __m256i low[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d)};
    const __m256i high[2] = {_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d)};
    to[0] = _mm256_unpacklo_epi16(low[0], low[1]);
    to[1] = _mm256_unpackhi_epi16(low[0], low[1]);
    to[2] = _mm256_unpacklo_epi16(high[0], high[1]);
    to[3] = _mm256_unpackhi_epi16(high[0], high[1]);
}
// Byte 16 l + 4 s + j of to[t] is byte 16 l + 4 t + s of of[j].
LLMD_INLINE void zip(const Bytes (&of)[4], Bytes (&to)[4]) {
    __m256i low[4];
    __m256i high[4];
    zip_half(of[0].low, of[1].low, of[2].low, of[3].low, low);
    zip_half(of[0].high, of[1].high, of[2].high, of[3].high, high);
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) to[t] = {low[t], high[t]};
}
LLMD_INLINE __m256i load_table(const int8_t* values) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
}
LLMD_INLINE Bytes look_up(Book book, Bytes a) {
    return {_mm256_shuffle_epi8(book.table, a.low), _mm256_shuffle_epi8(book.table, a.high)};
}

// Turns packed 8-bit codes, which have 128 added, into the form that products take.
LLMD_INLINE Bytes from_byte_codes(Bytes a);

// The fine scales of 16 rows, and the offsets to add to codes times scales. Scales have 8 bits, or 4 with
// kNibbles.
struct RowScales {
    Bytes scale, offset;
};
LLMD_INLINE Bytes spread(__m128i rows, const Places& places) {
    const __m256i both = _mm256_broadcastsi128_si256(rows);
    const Bytes place = load_bytes(places.bytes);
    return {_mm256_shuffle_epi8(both, place.low), _mm256_shuffle_epi8(both, place.high)};
}
LLMD_INLINE __m256i own_of_pair(__m256i pairs) {
    const __m256i odd_rows = _mm256_set1_epi64x(int64_t{4} << 32);
    return _mm256_and_si256(_mm256_srlv_epi32(pairs, odd_rows), _mm256_set1_epi16(15));
}
template <bool kNibbles>
LLMD_INLINE RowScales load_row_scales(const uint8_t* scales, const uint8_t* offsets) {
    const __m128i offset = _mm_loadu_si128(reinterpret_cast<const __m128i*>(offsets));
    const Bytes added = from_byte_codes(spread(offset, kRowEverywhere));
    if constexpr (kNibbles) {
        const Bytes pairs = spread(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales)), kPairInWords);
        return {{own_of_pair(pairs.low), own_of_pair(pairs.high)}, added};
    } else {
        return {spread(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)), kRowInWords), added};
    }
}
// Products are below 256, so those of 16 bits do not carry into the neighbouring byte.
LLMD_INLINE Bytes apply(const RowScales& scales, Bytes a) {
    return {_mm256_add_epi8(_mm256_mullo_epi16(a.low, scales.scale.low), scales.offset.low),
            _mm256_add_epi8(_mm256_mullo_epi16(a.high, scales.scale.high), scales.offset.high)};
}
LLMD_INLINE Quad load_quad(const int8_t* p, int i) {
    int32_t quad;
    std::memcpy(&quad, p + 4 * i, sizeof quad);
    return {_mm256_set1_epi32(quad)};
}
LLMD_INLINE Bytes subtract(Bytes a, int32_t offset) {
    const __m256i less = _mm256_set1_epi8(static_cast<char>(offset));
    return {_mm256_sub_epi8(a.low, less), _mm256_sub_epi8(a.high, less)};
}
LLMD_INLINE Sums set_sums(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
LLMD_INLINE Sums add(Sums a, Sums b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
// total + a * b, summed over the two words of each. Integers are such words if a fits in int16, and b is
// not negative and fits too.
LLMD_INLINE Sums add_products(Sums total, Sums a, Sums b) {
    return {_mm256_add_epi32(total.low, _mm256_madd_epi16(a.low, b.low)),
            _mm256_add_epi32(total.high, _mm256_madd_epi16(a.high, b.high))};
}
// Widens the fine scales of 16 rows, of 8 bits, or 4 with kNibbles.
template <bool kNibbles>
LLMD_INLINE Sums widen_row_scales(const uint8_t* scales) {
    if constexpr (kNibbles) {
        const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales));
        const auto own = [](__m256i pair) LLMD_LAMBDA {
            return _mm256_and_si256(_mm256_or_si256(pair, _mm256_slli_epi64(pair, 28)),
                                    _mm256_set1_epi32(15));
        };
        return {own(_mm256_cvtepu8_epi64(pairs)), own(_mm256_cvtepu8_epi64(_mm_srli_epi64(pairs, 32)))};
    } else {
        const __m128i rows = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
        return {_mm256_cvtepu8_epi32(rows), _mm256_cvtepu8_epi32(_mm_srli_si128(rows, 8))};
    }
}
template <int kPart>
LLMD_INLINE Vec to_float(Sums a) {
    static_assert(kPart == 0 || kPart == 1);
    return {_mm256_cvtepi32_ps(kPart == 0 ? a.low : a.high)};
}
template <int kShift>
LLMD_INLINE Sums shift_up(Sums a) {
    return {_mm256_slli_epi32(a.low, kShift), _mm256_slli_epi32(a.high, kShift)};
}
// Signed bytes, each multiplied by its own input.
using Residuals = Bytes;
LLMD_INLINE Residuals load_residuals(const uint8_t* p) { return load_bytes(p); }
// Sums of four neighbouring products of bytes within +-127.
LLMD_INLINE __m256i add_neighbours(__m256i inputs, __m256i weights) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(inputs, weights));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
LLMD_INLINE Sums multiply_each(Bytes inputs, Residuals weights) {
    return {add_neighbours(inputs.low, weights.low), add_neighbours(inputs.high, weights.high)};
}
LLMD_INLINE __m256i quad_sums(const int8_t* values) {
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), all), _mm256_set1_epi16(1));
}
// Sums of the four segments of a line.
LLMD_INLINE void segment_sums(const int8_t* values, int32_t* sums) {
    const __m256i pairs = _mm256_hadd_epi32(quad_sums(values), quad_sums(values + 32));
    const __m256i segments = _mm256_hadd_epi32(pairs, pairs);  // 0 2 0 2, 1 3 1 3
    const __m128i in_order =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(segments), _mm256_extracti128_si256(segments, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums), in_order);
}

}  // namespace llmd::LLMD_ISA
