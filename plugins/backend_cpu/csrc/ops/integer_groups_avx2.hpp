// linear, integers, several rows with AVX2, codes of at most 5 bits with one level of scales: products are
// summed in words, and totals stay in memory, since words and records fill the registers.
//
//   order    as in ops/integer_scales.hpp
//   bounds   up to 4 bits: 15 * 127 * 16 = 30480, since a word has two of the four inputs of the eight
//            records of a slab. 5 bits: 31 * 127 * 8 = 31496 for the four records of a segment

#pragma once

#include "ops/integer_words_avx2.hpp"

namespace llmd::LLMD_ISA {

// Most rows of a tile: with more than kRowTile, a load of records or scales serves more products.
constexpr int kGroupRows = 6;

template <class C, class S, int kRows>
class GroupTile {
  public:
    LLMD_INLINE_MEMBER GroupTile(const PanelBlock& block, const BlockShape& shape, const InputTile& x)
        : block_(block), x_(x) {
        sum_inputs(shape);
    }

    // Totals are [kRows][16].
    LLMD_INLINE_MEMBER void multiply(const BlockShape& shape, float* totals) const {
        const int64_t slab_segments = kSlabInputs / kSegmentInputs;
        each_activation(shape, [&](int64_t a, int64_t segment, int64_t end) LLMD_LAMBDA {
            const uint8_t* records = block_.records + 64 * kSegmentQuads * segment;
            Sums sums[kRows];
            unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m] = set_sums(0); });
            add_slab(records, x_.segment(shape.first_segment + segment), sums);
            while ((segment += slab_segments) < end) {
                records += 64 * kSlabQuads;
                add_slab(records, x_.segment(shape.first_segment + segment), sums);
            }
            add_group(a, x_.scales + (shape.first_activation + a) * x_.rows, sums, keep_in_memory(totals));
        });
    }

  private:
    static constexpr int kSegmentQuads = kSlabQuads / 2;
    // Records of a short book have 5 bits, although its codes have 4.
    static constexpr int kWordQuads = C::kBits <= 4 && !C::kShortBook ? kSlabQuads : kSegmentQuads;

    LLMD_INLINE_MEMBER static void add_slab(const uint8_t* records, const int8_t* inputs,
                                            Sums (&sums)[kRows]) {
        const __m256i ones = _mm256_set1_epi16(1);
        unroll<kSlabQuads / kWordQuads>([&](auto i) LLMD_LAMBDA {
            Sums words[kRows];
            unroll<kRows>([&](auto m) LLMD_LAMBDA { words[m] = set_sums(0); });
            add_words<kWordQuads, false>(records + 64 * kWordQuads * i, inputs + 4 * kWordQuads * i, words);
            unroll<kRows>([&](auto m)
                              LLMD_LAMBDA { sums[m] = add_products(sums[m], words[m], {ones, ones}); });
        });
    }
    // Factors from the sums of the inputs of each group.
    LLMD_INLINE_MEMBER void sum_inputs(const BlockShape& shape) {
        const int32_t* before = x_.running + shape.first_segment * x_.rows;
        const int32_t* const end = before + shape.segments * x_.rows;
        const int64_t step = shape.group_segments * x_.rows;
        const float* x_scales = x_.scales + shape.first_activation * x_.rows;
        for (int64_t i = 0; before < end; i += kRows, x_scales += x_.rows) {
            const int32_t* after = end - before < step ? end : before + step;
            for (int m = 0; m < kRows; ++m) {
                const int32_t of_inputs = after[m] - before[m];
                terms_.first[i + m] = -shape.offset * of_inputs;
                if constexpr (S::kMinimum)
                    terms_.minimum[i + m] = x_scales[m] * static_cast<float>(of_inputs);
            }
            before = after;
        }
    }
    LLMD_INLINE_MEMBER void add_group(int64_t group, const float* x_scales, const Sums (&sums)[kRows],
                                      float* totals) const {
        const float* scales = block_.scales + group * kPanelRows;
        const float* minimums = block_.minimums + group * kPanelRows;
        const Vec scale[kPanelVecs] = {load(scales), load(scales + Vec::kLanes)};
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const Vec x_scale = set1(x_scales[m]);
            const Sums sum = add(sums[m], set_sums(terms_.first[group * kRows + m]));
            Vec total[kPanelVecs];
            unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
                const float* from = totals + (m * kPanelVecs + v) * Vec::kLanes;
                total[v] = fma(to_float<v>(sum), scale[v] * x_scale, load(from));
                if constexpr (S::kMinimum) {
                    const Vec term = set1(terms_.minimum[group * kRows + m]);
                    total[v] = fma(load(minimums + v * Vec::kLanes), term, total[v]);
                }
            });
            unroll<kPanelVecs>(
                [&](auto v) LLMD_LAMBDA { store(totals + (m * kPanelVecs + v) * Vec::kLanes, total[v]); });
        });
    }

    const PanelBlock& block_;
    const InputTile& x_;
    GroupTerms<kRows> terms_;
};

template <class C, class S, int kRows>
void group_tile(const PanelBlock& block, const BlockShape& shape, const InputTile& x, float* totals) {
    GroupTile<C, S, kRows>(block, shape, x).multiply(shape, totals);
}

template <class C, class S>
    requires(C::kOperand == Operand::kShort && !S::kTwoLevels)
struct Blocks<C, S> {
    using Block = PanelBlock;
    static_assert(kPanelTile == 1);

    static const uint8_t* decode(const uint8_t* at, const PanelLayout& layout, int64_t first, int64_t last,
                                 Block& to) {
        return decode_block<C>(at, layout, first, last, to);
    }
    static void multiply(const IntegerPanels& of, const Block* panel, const BlockShape& shape, int64_t first,
                         int64_t last, float* totals) {
        each_tile<kGroupRows>(first, last, totals, [&](int64_t r, int64_t rows, float* to) LLMD_LAMBDA {
            with_rows<kGroupRows>(
                rows, [&](auto n) LLMD_LAMBDA { group_tile<C, S, n>(*panel, shape, of.inputs(r), to); });
        });
    }
};

}  // namespace llmd::LLMD_ISA
