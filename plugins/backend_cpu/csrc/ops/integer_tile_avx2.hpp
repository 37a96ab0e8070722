// linear, integers, several rows with AVX2, 4-bit codes whose fine scales are integers: products of codes
// are summed in 16 bits over a slab, and the multiplication by the fine scale widens the sums.
//
//   sum      over the slabs of an activation group of fine scale * (sum of code * q) - fine minimum * (sum
//            of q): the same integers as codes times fine scales, with two instructions for a product of 32
//            bytes instead of four
//   bounds   15 * 127 * 16 = 30480: a sum of 16 bits covers two of the four inputs of the eight records of a
//            slab. 32 * 127 = 4064: the sum of a slab's q fits too

#pragma once

#include "ops/integer_words_avx2.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kBlockSlabs = kBlockInputs / kSlabInputs;
constexpr int64_t kBlockLines = kBlockInputs / kLineInputs;

// A block of one panel: codes, and what multiplies their sums. In the last line, what belongs to no slab is
// not set: its inputs are zeros.
struct alignas(64) CodeBlock {
    uint8_t records[kBlockInputs * kPanelRows];
    uint8_t scales[64 * kBlockSlabs];         // fine scales: two words for each of 16 rows
    uint8_t minimums[64 * kBlockLines];       // negated fine minimums: of the two slabs of a line, as words
    float coarse[kBlockGroups * kPanelRows];  // of each activation group
};

template <int kRows>
class CodeTile {
  public:
    LLMD_INLINE_MEMBER CodeTile(const CodeBlock& block, const BlockShape& shape, const InputTile& x)
        : block_(block),
          x_(x),
          line_(x.segment(shape.first_segment)),
          x_scales_(x.scales + shape.first_activation * x.rows) {
        sum_inputs<2, kRows>(x.running + shape.first_segment * x.rows, x.rows, lines_of(shape), of_inputs_);
    }

    // Totals are [kRows][16].
    LLMD_INLINE_MEMBER void multiply(const BlockShape& shape, float* totals) {
        const float* coarse = block_.coarse;
        const int64_t lines = lines_of(shape);
        const int64_t group_lines = shape.activation_segments / kLineSegments;
        for (int64_t i = 0; i < lines;) {
            Sums sums[kRows];
            unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m] = set_sums(0); });
            const int64_t end = i + group_lines < lines ? i + group_lines : lines;
            for (; i < end; ++i) add_line(i, sums);
            add_group(coarse, sums, totals);
            coarse += kPanelRows;
            x_scales_ += x_.rows;
        }
    }

  private:
    static constexpr int64_t kLineSegments = kLineInputs / kSegmentInputs;

    LLMD_INLINE_MEMBER static int64_t lines_of(const BlockShape& shape) {
        return pieces(shape.segments, kLineSegments);
    }
    LLMD_INLINE_MEMBER void add_line(int64_t i, Sums (&sums)[kRows]) {
        const uint8_t* records = block_.records + 64 * kSlabQuads * 2 * i;
        const uint8_t* scales = block_.scales + 2 * 64 * i;
        add_slab(records, line_, scales, sums);
        add_slab(records + 64 * kSlabQuads, line_ + kSlabInputs, scales + 64, sums);
        const Bytes minimums = load_bytes(block_.minimums + 64 * i);
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            sums[m] =
                add_products(sums[m], set_sums(of_inputs_[i * kRows + m]), {minimums.low, minimums.high});
        });
        line_ += x_.rows * kLineInputs;
    }
    LLMD_INLINE_MEMBER static void add_slab(const uint8_t* records, const int8_t* inputs,
                                            const uint8_t* scales, Sums (&sums)[kRows]) {
        Sums products[kRows];
        unroll<kRows>([&](auto m) LLMD_LAMBDA { products[m] = set_sums(0); });
        add_words<kSlabQuads, false>(records, inputs, products);
        const Bytes scale = load_bytes(scales);
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            sums[m] = add_products(sums[m], products[m], {scale.low, scale.high});
        });
    }
    LLMD_INLINE_MEMBER void add_group(const float* coarse, const Sums (&sums)[kRows], float* totals) const {
        unroll<kRows * kPanelVecs>([&](auto i) LLMD_LAMBDA {
            constexpr int kRow = i / kPanelVecs;
            constexpr int kPart = i % kPanelVecs;
            const Vec scale = load(coarse + kPart * Vec::kLanes) * set1(x_scales_[kRow]);
            float* to = totals + i * Vec::kLanes;
            store(to, fma(to_float<kPart>(sums[kRow]), scale, load(to)));
        });
    }

    const CodeBlock& block_;
    const InputTile& x_;
    const int8_t* line_;                      // the next
    const float* x_scales_;                   // of the activation group
    int32_t of_inputs_[kBlockLines * kRows];  // two words each
};

template <int kRows>
void code_tile(const CodeBlock& block, const BlockShape& shape, const InputTile& x, float* totals) {
    CodeTile<kRows>(block, shape, x).multiply(shape, totals);
}
// Widens 16 bytes less 128 to words: the first or the second of each pair.
template <bool kSecond>
LLMD_INLINE void store_words(const uint8_t* bytes, uint8_t* words) {
    const __m128i all =
        _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)), _mm_set1_epi8(-128));
    const Bytes wide = {_mm256_cvtepi8_epi32(all), _mm256_cvtepi8_epi32(_mm_srli_si128(all, 8))};
    if constexpr (!kSecond) return store_bytes(words, wide);
    const Bytes first = load_bytes(words);
    store_bytes(words, {_mm256_blend_epi16(first.low, _mm256_slli_epi32(wide.low, 16), 0xaa),
                        _mm256_blend_epi16(first.high, _mm256_slli_epi32(wide.high, 16), 0xaa)});
}

template <class S>
struct Blocks<Codes<4, false, 2>, S> {
    using Block = CodeBlock;
    static_assert(kPanelTile == 1);

    static const uint8_t* decode(const uint8_t* at, const PanelLayout& layout, int64_t first, int64_t last,
                                 Block& to) {
        using Plain = Codes<4>;
        const Decoding<Plain> decoding(layout.format);
        int64_t slab = 0;
        for (int64_t a = first; a < last; ++a) {
            const int64_t slabs = layout.slabs(a);
            widen_coarse(at, layout.format.bf16_scales, to.coarse + kPanelRows * (a - first));
            at += layout.coarse_bytes();
            const uint8_t* scales = at;
            const uint8_t* minimums = at + layout.fine_scale_bytes(a);
            at += layout.fine_bytes(a);
            for (int64_t c = 0; c < slabs; ++c, ++slab, at += 64 * Plain::kBits) {
                const RowScales scale =
                    load_row_scales<true>(scales + c * kPanelRows / 2, minimums + c * kPanelRows);
                store_bytes(to.scales + 64 * slab, scale.scale);
                uint8_t* words = to.minimums + 64 * (slab / 2);
                if (c % 2 == 0) {
                    store_words<false>(minimums + c * kPanelRows, words);
                } else {
                    store_words<true>(minimums + c * kPanelRows, words);
                }
                decode_slab<Plain, false>(at, decoding, layout.format, to.records + slab * kSlabQuads * 64);
            }
        }
        return at;
    }
    static void multiply(const IntegerPanels& of, const Block* panel, const BlockShape& shape, int64_t first,
                         int64_t last, float* totals) {
        each_tile(first, last, totals, [&](int64_t r, int64_t rows, float* to) LLMD_LAMBDA {
            with_rows(rows, [&](auto n) LLMD_LAMBDA { code_tile<n>(*panel, shape, of.inputs(r), to); });
        });
    }
};

}  // namespace llmd::LLMD_ISA
