// The vector type of the AVX-512 unit: 16 float32 lanes, masked tails, VNNI dot products.
//
// Every unit defines the same names (../README.md lists them); the ops are written against those alone.

#pragma once

// g++ 12 warns about deliberately undefined operands in its own header (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__  // clang does not know this warning
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "prefetch_distance.hpp"
#include "simd/elements.hpp"
#include "simd/row_places.hpp"

namespace llmd::LLMD_ISA {

struct Vec {
    static constexpr int kLanes = 16;
    __m512 v;
};

LLMD_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1U << n) - 1U); }

LLMD_INLINE __m512 widen_e4m3(__m128i bytes) {
    const __m256i extended = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), kE4M3Shift);
    return _mm512_cvtph_ps(_mm256_and_si256(extended, _mm256_set1_epi16(static_cast<int16_t>(kE4M3Mask))));
}

LLMD_INLINE Vec set1(float x) { return {_mm512_set1_ps(x)}; }
LLMD_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
LLMD_INLINE Vec load(const F16* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
LLMD_INLINE Vec load(const BF16* p) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16))};
}
LLMD_INLINE Vec load(const E4M3* p) {
    return {widen_e4m3(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
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
LLMD_INLINE Vec load_n(const E4M3* p, int n) { return {widen_e4m3(_mm_maskz_loadu_epi8(first_lanes(n), p))}; }
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
    // Rounding the bits of a NaN could carry into its sign.
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
    const __m512i upper = _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(upper));
}
// Rounds to nearest even; the result must be within -128..127.
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

constexpr int kPlainRowTile = 6;
constexpr int kFloatTile = 24;

// Integers: a record is 16 output rows by 4 inputs, one register. VNNI takes unsigned weights: signed
// bytes are stored with 128 added.
constexpr int kBiasOfSigned = 128;
constexpr bool kPlainRecords = false;
constexpr bool kUnrollsBands = true;
constexpr int kScaledRows = 3;
constexpr int kCodeRows = 3;
constexpr int kRowTile = 6;
constexpr int kPanelTile = 2;
constexpr int kRowPanels = 2;
constexpr bool kPrefetches = true;
constexpr const int64_t& kRowAhead = kAvx512RowAhead;
constexpr int kTileAhead = 2048;

enum class Operand { kUnsigned };
constexpr Operand operand_of(int, bool) { return Operand::kUnsigned; }

struct Bytes {
    __m512i v;
};
struct Book {
    __m512i table;  // repeated in every 16 bytes
};
struct Quad {
    __m512i v;  // the same 4 inputs in every lane
};
struct Sums {
    __m512i v;
};

LLMD_INLINE Bytes load_bytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
LLMD_INLINE void store_bytes(uint8_t* p, Bytes a) { _mm512_storeu_si512(p, a.v); }
LLMD_INLINE Bytes from_byte_codes(Bytes a) { return a; }
// Shifts bits down by kShift, or up if kShift is negative. The caller masks bits that cross into a
// neighbouring byte.
template <int kShift>
LLMD_INLINE __m512i shift_bits(__m512i a) {
    if constexpr (kShift > 0) return _mm512_srli_epi16(a, kShift);
    if constexpr (kShift < 0) return _mm512_slli_epi16(a, -kShift);
    return a;
}
template <int kShift, int kMask>
LLMD_INLINE Bytes field(Bytes a) {
    return {_mm512_and_si512(shift_bits<kShift>(a.v), _mm512_set1_epi8(kMask))};
}
template <int kShift, int kMask>
LLMD_INLINE Bytes with_field(Bytes base, Bytes a) {
    constexpr int kFirstOrBothOthers = 0xf8;
    return {_mm512_ternarylogic_epi32(base.v, shift_bits<kShift>(a.v), _mm512_set1_epi8(kMask),
                                      kFirstOrBothOthers)};
}
// Shifts bits down by `bits`. The caller masks bits that come from a neighbouring byte.
LLMD_INLINE Bytes shift_down(Bytes a, int bits) { return {_mm512_srl_epi16(a.v, _mm_cvtsi32_si128(bits))}; }
// Byte 16 l + 4 s + j of to[t] is byte 16 l + 4 t + s of of[j].
LLMD_INLINE void zip(const Bytes (&of)[4], Bytes (&to)[4]) {
    const __m512i low[2] = {_mm512_unpacklo_epi8(of[0].v, of[1].v), _mm512_unpacklo_epi8(of[2].v, of[3].v)};
    const __m512i high[2] = {_mm512_unpackhi_epi8(of[0].v, of[1].v), _mm512_unpackhi_epi8(of[2].v, of[3].v)};
    to[0].v = _mm512_unpacklo_epi16(low[0], low[1]);
    to[1].v = _mm512_unpackhi_epi16(low[0], low[1]);
    to[2].v = _mm512_unpacklo_epi16(high[0], high[1]);
    to[3].v = _mm512_unpackhi_epi16(high[0], high[1]);
}
LLMD_INLINE Book load_book(const int8_t* values) {
    const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    return {_mm512_xor_si512(_mm512_broadcast_i32x4(table), _mm512_set1_epi8(-128))};
}
// The fine scales of 16 rows, and the offsets to add to codes times scales. Scales have 8 bits, or 4 with
// kNibbles.
struct RowScales {
    __m512i scale, offset;
};
LLMD_INLINE __m512i spread(__m128i rows, const Places& places) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(rows), _mm512_load_si512(places.bytes));
}
template <bool kNibbles>
LLMD_INLINE RowScales load_row_scales(const uint8_t* scales, const uint8_t* offsets) {
    const __m128i offset = _mm_loadu_si128(reinterpret_cast<const __m128i*>(offsets));
    if constexpr (kNibbles) {
        const __m512i pairs = spread(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales)), kPairInWords);
        const __m512i odd_rows = _mm512_set1_epi64(int64_t{4} << 32);
        const __m512i own = _mm512_and_si512(_mm512_srlv_epi32(pairs, odd_rows), _mm512_set1_epi16(15));
        return {own, spread(offset, kRowEverywhere)};
    } else {
        const __m128i rows = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
        return {spread(rows, kRowInWords), spread(offset, kRowEverywhere)};
    }
}
// Codes times their scales, plus the offset. Products are below 256, so those of 16 bits do not carry into
// the neighbouring byte.
LLMD_INLINE Bytes apply(RowScales scales, Bytes a) {
    return {_mm512_add_epi8(_mm512_mullo_epi16(a.v, scales.scale), scales.offset)};
}
LLMD_INLINE Bytes subtract(Bytes a, int32_t x) {
    return {_mm512_sub_epi8(a.v, _mm512_set1_epi8(static_cast<char>(x)))};
}
LLMD_INLINE Bytes look_up(Book book, Bytes a) { return {_mm512_shuffle_epi8(book.table, a.v)}; }

LLMD_INLINE Quad load_quad(const int8_t* p, int i) {
    int32_t quad;
    std::memcpy(&quad, p + 4 * i, sizeof quad);
    return {_mm512_set1_epi32(quad)};
}
LLMD_INLINE Sums load_sums(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
LLMD_INLINE Sums set_sums(int32_t x) { return {_mm512_set1_epi32(x)}; }
LLMD_INLINE Sums add(Sums a, Sums b) { return {_mm512_add_epi32(a.v, b.v)}; }
// total + a * b, if a fits in int16, and b is not negative and fits too.
LLMD_INLINE Sums add_products(Sums total, Sums a, Sums b) { return {_mm512_dpwssd_epi32(total.v, a.v, b.v)}; }
// Widens the fine scales of 16 rows, of 8 bits, or 4 with kNibbles.
template <bool kNibbles>
LLMD_INLINE Sums widen_row_scales(const uint8_t* scales) {
    if constexpr (kNibbles) {
        const __m512i pairs = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales)));
        return {
            _mm512_and_si512(_mm512_or_si512(pairs, _mm512_slli_epi64(pairs, 28)), _mm512_set1_epi32(15))};
    } else {
        return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)))};
    }
}
template <int kPart>
LLMD_INLINE Vec to_float(Sums a) {
    static_assert(kPart == 0);
    return {_mm512_cvtepi32_ps(a.v)};
}
// Sums of the four segments of a line.
LLMD_INLINE void segment_sums(const int8_t* values, int32_t* sums) {
    const __m512i all = _mm512_loadu_si512(values);
    const __m512i quads = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), all);
    const __m512i pairs = _mm512_add_epi32(quads, _mm512_shuffle_epi32(quads, _MM_PERM_CDAB));
    const __m512i segments = _mm512_add_epi32(pairs, _mm512_shuffle_epi32(pairs, _MM_PERM_BADC));
    const __m512i together = _mm512_maskz_compress_epi32(0x1111, segments);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums), _mm512_castsi512_si128(together));
}

// 64 places in 4 lines of 64 bytes. AVX-512 BW cannot shuffle bytes across a register, only 16-bit words:
// one shuffle finds the words for the even bytes of the result, one for the odd bytes.
struct Columns {
    __m512i even, odd;                // indices of words in a line
    __mmask32 of_even[4], of_odd[4];  // whether the word is in line i
    __m512i even_shift, odd_shift;    // shifts that select the byte of a word

    LLMD_INLINE_MEMBER explicit Columns(const uint8_t* p) {
        const __m512i places = _mm512_loadu_si512(p);
        const __m512i even_places = _mm512_and_si512(places, _mm512_set1_epi16(255));
        const __m512i odd_places = _mm512_srli_epi16(places, 8);
        const __m512i one = _mm512_set1_epi16(1);
        even = _mm512_srli_epi16(even_places, 1);
        odd = _mm512_srli_epi16(odd_places, 1);
        even_shift = _mm512_slli_epi16(_mm512_and_si512(even_places, one), 3);
        odd_shift = _mm512_slli_epi16(_mm512_and_si512(odd_places, one), 3);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const __m512i line = _mm512_set1_epi16(static_cast<int16_t>(i));
            of_even[i] = _mm512_cmpeq_epi16_mask(_mm512_srli_epi16(even_places, 6), line);
            of_odd[i] = _mm512_cmpeq_epi16_mask(_mm512_srli_epi16(odd_places, 6), line);
        }
    }
};
LLMD_INLINE Bytes gather(const Columns& columns, const int8_t* lines, int64_t stride) {
    __m512i even = _mm512_setzero_si512();
    __m512i odd = even;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const __m512i line = _mm512_loadu_si512(lines + i * stride);
        even = _mm512_mask_permutexvar_epi16(even, columns.of_even[i], columns.even, line);
        odd = _mm512_mask_permutexvar_epi16(odd, columns.of_odd[i], columns.odd, line);
    }
    even = _mm512_and_si512(_mm512_srlv_epi16(even, columns.even_shift), _mm512_set1_epi16(255));
    odd = _mm512_slli_epi16(_mm512_srlv_epi16(odd, columns.odd_shift), 8);
    return {_mm512_or_si512(even, odd)};
}
template <int kShift>
LLMD_INLINE Sums shift_up(Sums a) {
    return {_mm512_slli_epi32(a.v, kShift)};
}
// Signed bytes, each multiplied by its own input. Inputs have 128 added, which `start` subtracts from the
// sums.
struct Residuals {
    __m512i weights, start;
};
LLMD_INLINE Residuals load_residuals(const uint8_t* p) {
    const __m512i weights = _mm512_loadu_si512(p);
    const __m512i none = _mm512_setzero_si512();
    return {weights, _mm512_sub_epi32(none, _mm512_dpbusd_epi32(none, _mm512_set1_epi8(-128), weights))};
}
// Sums of four neighbouring products.
LLMD_INLINE Sums multiply_each(Bytes inputs, const Residuals& residuals) {
    const __m512i above = _mm512_xor_si512(inputs.v, _mm512_set1_epi8(-128));
    return {_mm512_dpbusd_epi32(residuals.start, above, residuals.weights)};
}

template <Operand>
struct Accumulator {
    __m512i v;

    LLMD_INLINE_MEMBER void start(int32_t x) { v = _mm512_set1_epi32(x); }
    LLMD_INLINE_MEMBER void add(Bytes record, Quad inputs) {
        // As an intrinsic, g++ 12 copies every accumulator around it and halves the speed of a tile.
        asm("vpdpbusd %2, %1, %0" : "+v"(v) : "v"(record.v), "v"(inputs.v));
    }
    LLMD_INLINE_MEMBER void close() {}
    LLMD_INLINE_MEMBER Sums sums() const { return {v}; }
};

// Sums over 32 codes of 4 bits, times a fine scale: cheaper than multiplying each code by the scale.
struct ScaledSums {
    __m512i total;

    LLMD_INLINE_MEMBER void start() { total = _mm512_setzero_si512(); }
    // 15 * 127 * 16 = 30480: the sums over the codes in low halves, and over those in high halves, fit in
    // 16 bits.
    LLMD_INLINE_MEMBER void add(const Bytes (&planes)[4], const uint8_t* scales, const uint8_t* offsets,
                                const int8_t* inputs, int32_t q_sum) {
        const __m512i low_half = _mm512_set1_epi8(15);
        Accumulator<Operand::kUnsigned> low, high;
        low.start(0);
        high.start(0);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            low.add({_mm512_and_si512(planes[i].v, low_half)}, load_quad(inputs, 2 * i));
            high.add({_mm512_andnot_si512(low_half, planes[i].v)}, load_quad(inputs, 2 * i + 1));
        }
        // The codes in high halves are 16 times too large: shifted by 12, their sums are in the upper 16
        // bits.
        const __m512i pairs =
            _mm512_ternarylogic_epi32(_mm512_slli_epi32(high.v, 12), low.v, _mm512_set1_epi32(0xffff), 0xf8);
        const __m128i offset = _mm_loadu_si128(reinterpret_cast<const __m128i*>(offsets));
        total = _mm512_dpwssd_epi32(total, pairs, load_row_scales<true>(scales, offsets).scale);
        total = _mm512_dpwssd_epi32(total, _mm512_cvtepu8_epi32(offset), _mm512_set1_epi32(q_sum));
    }
    LLMD_INLINE_MEMBER Sums sums() const { return {total}; }
};

}  // namespace llmd::LLMD_ISA
