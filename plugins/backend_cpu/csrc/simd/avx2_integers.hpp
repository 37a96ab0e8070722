// Integer products in AVX2, whose instruction adds two products of an unsigned and a signed byte in 16
// bits with saturation.
//
//   codes of at most 5 bits  31 * 127 * 2 = 7874: four records fit in 16 bits before they are widened
//   codes of 6 bits          63 * 127 * 2 = 16002: each record is widened
//   signed bytes             |w| * sign(a, w), at most 128 * 127 * 2 = 32512: each record is widened

#pragma once

#include "simd/avx2_bytes.hpp"

namespace llmd::LLMD_ISA {

constexpr int kBiasOfSigned = 0;
constexpr bool kPlainRecords = false;
constexpr bool kUnrollsBands = true;
constexpr int kScaledRows = 1;
constexpr int kCodeRows = 1;
constexpr int kRowTile = 4;
constexpr int kPanelTile = 1;
constexpr int kRowPanels = 2;
constexpr bool kPrefetches = true;
constexpr int kRowAhead = 1024;
constexpr int kTileAhead = 2048;

enum class Operand { kShort, kUnsigned, kSigned };
constexpr Operand operand_of(int bits, bool book) {
    if (book || bits == 8) return Operand::kSigned;
    return bits <= 5 ? Operand::kShort : Operand::kUnsigned;
}

LLMD_INLINE Bytes from_byte_codes(Bytes a) {
    const __m256i sign = _mm256_set1_epi8(-128);
    return {_mm256_xor_si256(a.low, sign), _mm256_xor_si256(a.high, sign)};
}
LLMD_INLINE Book load_book(const int8_t* values) { return {load_table(values)}; }

// Makes the compiler add each product before it multiplies the next: otherwise it multiplies first, keeps
// all products in memory, and adds later.
LLMD_INLINE void keep_order(__m256i& low, __m256i& high) { asm("" : "+x"(low), "+x"(high)); }

LLMD_INLINE __m256i widen_pairs(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
template <Operand kOperand>
LLMD_INLINE __m256i multiply_pairs(__m256i weights, __m256i inputs) {
    if constexpr (kOperand != Operand::kSigned) return _mm256_maddubs_epi16(weights, inputs);
    return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(inputs, weights));
}

template <Operand kOperand>
struct Accumulator {
    Sums total;

    LLMD_INLINE_MEMBER void start(int32_t x) { total = set_sums(x); }
    LLMD_INLINE_MEMBER void add(Bytes record, Quad inputs) {
        total.low = _mm256_add_epi32(total.low, widen_pairs(multiply_pairs<kOperand>(record.low, inputs.v)));
        total.high =
            _mm256_add_epi32(total.high, widen_pairs(multiply_pairs<kOperand>(record.high, inputs.v)));
        keep_order(total.low, total.high);
    }
    LLMD_INLINE_MEMBER void close() {}
    LLMD_INLINE_MEMBER Sums sums() const { return total; }
};

// At most four records may be added between two calls of `close`.
template <>
struct Accumulator<Operand::kShort> {
    Sums total;
    __m256i low, high;  // in 16 bits

    LLMD_INLINE_MEMBER void start(int32_t x) {
        total = set_sums(x);
        low = high = _mm256_setzero_si256();
    }
    LLMD_INLINE_MEMBER void add(Bytes record, Quad inputs) {
        low = _mm256_add_epi16(low, _mm256_maddubs_epi16(record.low, inputs.v));
        high = _mm256_add_epi16(high, _mm256_maddubs_epi16(record.high, inputs.v));
        keep_order(low, high);
    }
    LLMD_INLINE_MEMBER void close() {
        total.low = _mm256_add_epi32(total.low, widen_pairs(low));
        total.high = _mm256_add_epi32(total.high, widen_pairs(high));
        low = high = _mm256_setzero_si256();
    }
    LLMD_INLINE_MEMBER Sums sums() const { return total; }
};

// Sums over 32 codes of 4 bits, times a fine scale: the multiplication also widens the sums.
struct ScaledSums {
    Sums total;

    LLMD_INLINE_MEMBER void start() { total = set_sums(0); }
    // 15 * 127 * 16 = 30480: each 16-bit sum covers two of the four inputs of all records, and fits.
    LLMD_INLINE_MEMBER void add(const Bytes (&planes)[4], const uint8_t* scales, const uint8_t* offsets,
                                const int8_t* inputs, int32_t q_sum) {
        __m256i low = _mm256_setzero_si256();
        __m256i high = low;
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const Quad first = load_quad(inputs, 2 * i);
            const Quad second = load_quad(inputs, 2 * i + 1);
            const Bytes even = field<0, 15>(planes[i]);
            const Bytes odd = field<4, 15>(planes[i]);
            low = _mm256_add_epi16(low, _mm256_maddubs_epi16(even.low, first.v));
            low = _mm256_add_epi16(low, _mm256_maddubs_epi16(odd.low, second.v));
            high = _mm256_add_epi16(high, _mm256_maddubs_epi16(even.high, first.v));
            high = _mm256_add_epi16(high, _mm256_maddubs_epi16(odd.high, second.v));
        }
        const Bytes scale = load_row_scales<true>(scales, offsets).scale;
        const __m256i of_inputs = _mm256_set1_epi32(q_sum & 0xffff);
        add_products(total.low, low, scale.low, offset_of(offsets), of_inputs);
        add_products(total.high, high, scale.high, offset_of(offsets + 8), of_inputs);
    }
    LLMD_INLINE_MEMBER Sums sums() const { return total; }

  private:
    LLMD_INLINE_MEMBER static __m256i offset_of(const uint8_t* offsets) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(offsets));
        return _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(128));
    }
    LLMD_INLINE_MEMBER static void add_products(__m256i& sum, __m256i a, __m256i b, __m256i c, __m256i d) {
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_madd_epi16(a, b), _mm256_madd_epi16(c, d)));
    }
};

}  // namespace llmd::LLMD_ISA
