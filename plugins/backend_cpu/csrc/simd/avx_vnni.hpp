// Integer products with AVX-VNNI: adds four products of an unsigned and a signed byte in 32 bits at once,
// in AVX2 registers.

#pragma once

#include "simd/avx2_bytes.hpp"

namespace llmd::LLMD_ISA {

// Weights are the unsigned operand: signed bytes are stored with 128 added.
constexpr int kBiasOfSigned = 128;
constexpr bool kPlainRecords = false;
constexpr bool kUnrollsBands = true;
constexpr int kScaledRows = 2;
constexpr int kCodeRows = 1;
constexpr int kRowTile = 6;
constexpr int kPanelTile = 1;
constexpr int kRowPanels = 2;
constexpr bool kPrefetches = true;
constexpr int kRowAhead = 1024;
constexpr int kTileAhead = 2048;

enum class Operand { kUnsigned };
constexpr Operand operand_of(int, bool) { return Operand::kUnsigned; }

LLMD_INLINE Bytes from_byte_codes(Bytes a) { return a; }
LLMD_INLINE Book load_book(const int8_t* values) {
    return {_mm256_xor_si256(load_table(values), _mm256_set1_epi8(-128))};
}

template <Operand>
struct Accumulator {
    Sums total;

    LLMD_INLINE_MEMBER void start(int32_t x) { total = set_sums(x); }
    LLMD_INLINE_MEMBER void add(Bytes record, Quad inputs) {
        add_products(total.low, record.low, inputs.v);
        add_products(total.high, record.high, inputs.v);
    }
    LLMD_INLINE_MEMBER void close() {}
    LLMD_INLINE_MEMBER Sums sums() const { return total; }

  private:
    LLMD_INLINE_MEMBER static void add_products(__m256i& sum, __m256i weights, __m256i inputs) {
        // As an intrinsic, g++ 12 copies accumulators around it, as with AVX-512.
        asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(weights), "x"(inputs));
    }
};

// Sums over 32 codes of 4 bits, times a fine scale: cheaper than multiplying each code by the scale.
struct ScaledSums {
    Sums total;

    LLMD_INLINE_MEMBER void start() { total = set_sums(0); }
    LLMD_INLINE_MEMBER void add(const Bytes (&planes)[4], const uint8_t* scales, const uint8_t* offsets,
                                const int8_t* inputs, int32_t q_sum) {
        Accumulator<Operand::kUnsigned> low, high;
        low.start(0);
        high.start(0);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            low.add(field<0, 15>(planes[i]), load_quad(inputs, 2 * i));
            high.add(upper_codes(planes[i]), load_quad(inputs, 2 * i + 1));
        }
        const Bytes scale = load_row_scales<true>(scales, offsets).scale;
        const __m256i of_inputs = _mm256_set1_epi32(q_sum);
        add_scaled(total.low, low.total.low, high.total.low, scale.low);
        add_scaled(total.high, low.total.high, high.total.high, scale.high);
        total.low = _mm256_dpwssd_avx_epi32(total.low, widened(offsets), of_inputs);
        total.high = _mm256_dpwssd_avx_epi32(total.high, widened(offsets + 8), of_inputs);
    }
    LLMD_INLINE_MEMBER Sums sums() const { return total; }

  private:
    // The codes in high halves, times 16.
    LLMD_INLINE_MEMBER static Bytes upper_codes(Bytes plane) {
        const __m256i low_half = _mm256_set1_epi8(15);
        return {_mm256_andnot_si256(low_half, plane.low), _mm256_andnot_si256(low_half, plane.high)};
    }
    // 15 * 127 * 16 = 30480: sums over half the codes fit in 16 bits. Those over high halves are 16 times
    // too large: shifted by 12, they are in the upper 16 bits.
    LLMD_INLINE_MEMBER static void add_scaled(__m256i& sum, __m256i low, __m256i high, __m256i scale) {
        const __m256i pairs = _mm256_blend_epi16(low, _mm256_slli_epi32(high, 12), 0xaa);
        sum = _mm256_dpwssd_avx_epi32(sum, pairs, scale);
    }
    LLMD_INLINE_MEMBER static __m256i widened(const uint8_t* offsets) {
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(offsets)));
    }
};

}  // namespace llmd::LLMD_ISA
