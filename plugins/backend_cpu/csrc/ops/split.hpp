// Splits activations into sums of three bf16 numbers: a = the upper 16 bits of x, b = those of x - a,
// c = x - a - b, each exact: together they have the 24 bits of x's significand
//
//   x    [rows, cols] f32
//   out  [tiles of 16 rows][lines of 32 inputs][a, b, c][16 pairs of inputs][rows of the tile][2]: an AMX
//        tile for each term; zeros beyond cols, and in the unused rows of the last of several tiles
//   not  infinities and NaN, which are a alone; nor numbers below the least normal number, which this
//        backend treats as zero: c is lost if x is below 2^-103
//   work   8 lines of a tile at a time

#pragma once

#include "bf16_layout.hpp"
#include "ops/near.hpp"
#include "ops/transpose.hpp"

namespace llmd::LLMD_ISA {

constexpr int kUpperHalf = ~0xffff;

LLMD_INLINE __m512 without_upper_half(__m512 x) {
    const __m512 upper =
        _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(kUpperHalf)));
    const __mmask16 finite =
        _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
    return _mm512_maskz_sub_ps(finite, x, upper);
}

// The terms of up to 32 inputs of a row, two in each lane.
LLMD_INLINE void split_line(const float* x, int64_t count, __m512i (&terms)[kBf16Terms]) {
    constexpr int64_t kLanes = Vec::kLanes;
    const auto first = static_cast<int>(count < kLanes ? count : kLanes);
    const auto second = static_cast<int>(count < kBf16Inputs ? count - first : kLanes);
    __m512 low = load_n(x, first).v;
    __m512 high = load_n(x + first, second).v;
    // Words 1, 3, … of both registers.
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i odd = _mm512_add_epi32(_mm512_set1_epi32(0x00030001),
                                         _mm512_mullo_epi32(_mm512_set1_epi32(0x00040004), lanes));
    unroll<kBf16Terms>([&](auto t) LLMD_LAMBDA {
        terms[t] = _mm512_permutex2var_epi16(_mm512_castps_si512(low), odd, _mm512_castps_si512(high));
        low = without_upper_half(low);
        high = without_upper_half(high);
    });
}

// A line of `rows` rows, beginning with row `first`.
LLMD_INLINE void split_tile(const ConvertArgs& args, int64_t first, int64_t rows, int64_t line, int64_t width,
                            uint16_t* out) {
    const int64_t left = args.cols - line * kBf16Inputs;
    const int64_t count = left < kBf16Inputs ? left : kBf16Inputs;
    __m512i pairs[kBf16Terms][kInputRows] = {};  // zeros for unused rows
    for (int64_t r = 0; r < rows; ++r) {
        __m512i terms[kBf16Terms];
        split_line(args.row(first + r) + line * kBf16Inputs, count, terms);
        for (int64_t t = 0; t < kBf16Terms; ++t) pairs[t][r] = terms[t];
    }
    for (int64_t t = 0; t < kBf16Terms; ++t) {
        if (width == 1) {
            _mm512_storeu_si512(out + t * kBf16Inputs, pairs[t][0]);
            continue;
        }
        transpose(pairs[t]);
        for (int64_t i = 0; i < kBf16Pairs; ++i) {
            _mm512_mask_storeu_epi32(out + 2 * (t * kBf16Pairs + i) * width,
                                     first_lanes(static_cast<int>(width)), pairs[t][i]);
        }
    }
}

// Item i of the lines of all tiles.
LLMD_INLINE void split_item(const ConvertArgs& args, const TermLayout& layout, int64_t i) {
    const int64_t first = i / layout.lines() * kInputRows;
    const int64_t rows = args.rows - first < layout.width() ? args.rows - first : layout.width();
    split_tile(args, first, rows, i % layout.lines(), layout.width(),
               args.out.bf16_terms + i * kBf16Terms * layout.term());
}

void split(const ConvertArgs& args, Worker& worker) {
    constexpr int64_t kGrain = 8;
    const TermLayout layout{args.rows, args.cols};
    each_near(worker, layout.tiles() * layout.lines(), kGrain,
              [&](int64_t i) LLMD_LAMBDA { split_item(args, layout, i); });
}

// A thread converts whole parts.
void split_batch(const ConvertBatchArgs& batch, Worker& worker) {
    for (int64_t i; (i = worker.take(1)) < batch.count;) {
        const ConvertArgs& args = batch.parts[i];
        const TermLayout layout{args.rows, args.cols};
        for (int64_t k = 0; k < layout.tiles() * layout.lines(); ++k) split_item(args, layout, k);
    }
}

}  // namespace llmd::LLMD_ISA
