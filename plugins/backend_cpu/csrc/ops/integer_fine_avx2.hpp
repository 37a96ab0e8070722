// linear, integers, several rows with AVX2, two levels of scales: products are summed in words, and the
// multiplication by the fine scale, a word too, widens them.
//
//   order    as in ops/integer_scales.hpp: the first groups are added as integers, the others as floats
//   bounds   with minimums as in ops/integer_groups_avx2.hpp. Without, codes less their zero are signed, and
//            inputs plus 128 are not: 32 * 127 * 8 = 32512 is the most that a word of a segment is, once 128
//            times the sum of the codes is subtracted. Before, it may wrap around

#pragma once

#include "ops/integer_words_avx2.hpp"

namespace llmd::LLMD_ISA {

// A block of one panel: codes, and what multiplies their sums.
struct alignas(64) FineBlock {
    static constexpr int64_t kGroups = kBlockInputs / kMostGroupInputs;

    uint8_t records[kBlockInputs * kPanelRows];
    uint8_t scales[64 * kBlockGroups];        // fine scales: two words for each of 16 rows
    uint8_t minimums[64 * kBlockGroups / 2];  // fine minimums: of two groups, as words
    uint8_t starts[64 * kBlockGroups];        // of the words of signed codes
    float coarse[kGroups * kPanelRows];       // of each activation group
    float coarse_minimums[kGroups * kPanelRows];
};

// Two words for each of 16 rows, from a byte of each.
LLMD_INLINE Bytes words_of(const uint8_t* first, const uint8_t* second) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second));
    return {_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)), _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b))};
}

// -128 times the sums of signed codes of the records of a segment.
LLMD_INLINE Bytes starts_of(const uint8_t* records) {
    const __m256i factor = _mm256_set1_epi8(-128);  // as an unsigned byte
    Bytes starts = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    unroll<kSlabQuads / 2>([&](auto q) LLMD_LAMBDA {
        const Bytes record = load_bytes(records + 64 * q);
        starts.low = _mm256_sub_epi16(starts.low, _mm256_maddubs_epi16(factor, record.low));
        starts.high = _mm256_sub_epi16(starts.high, _mm256_maddubs_epi16(factor, record.high));
    });
    return starts;
}

template <class C, class S, int kRows>
class FineTile {
  public:
    LLMD_INLINE_MEMBER FineTile(const FineBlock& block, const BlockShape& shape, const InputTile& x)
        : block_(block), x_scales_(x.scales + shape.first_activation * x.rows), rows_(x.rows) {
        const int8_t* inputs = x.segment(shape.first_segment);
        const int64_t lines = pieces(shape.segments, kLineInputs / kSegmentInputs);
        if constexpr (kSigned) {
            add_128(inputs, x.rows * kLineInputs, lines);
            inputs_ = reinterpret_cast<const int8_t*>(unsigned_inputs_);
            line_stride_ = kRows * kLineInputs;
        } else {
            inputs_ = inputs;
            line_stride_ = x.rows * kLineInputs;
            sum_inputs<kGroupSegments, kRows>(x.running + shape.first_segment * x.rows, x.rows,
                                              pieces(shape.segments, 2 * kGroupSegments), of_inputs_);
        }
    }

    // Totals are [kRows][16].
    LLMD_INLINE_MEMBER void multiply(const BlockShape& shape, float* totals) const {
        each_activation(shape, [&](int64_t a, int64_t segment, int64_t end) LLMD_LAMBDA {
            const float* x_scales = x_scales_ + a * rows_;
            int64_t slab = segment / kSlabSegments;
            const int64_t last = end / kSlabSegments;
            Totals<kRows> sums = sum_exactly(slab, slab + kExactSlabs < last ? slab + kExactSlabs : last);
            for (slab += kExactSlabs; slab < last; ++slab) {
                each_group(slab,
                           [&](int64_t group, const uint8_t* records, const int8_t* inputs) LLMD_LAMBDA {
                               Sums of_group[kRows];
                               clear(of_group);
                               add_group(group, records, inputs, of_group);
                               unroll<kRows * kPanelVecs>([&](auto i) LLMD_LAMBDA {
                                   sums.v[i] = sums.v[i] + to_float<i % kPanelVecs>(of_group[i / kPanelVecs]);
                               });
                           });
            }
            add_inner(block_.coarse + a * kPanelRows, x_scales, sums, totals);
            if constexpr (S::kMinimum) {
                sum_minimums(segment / (2 * kGroupSegments), pieces(end, 2 * kGroupSegments), sums);
                add_inner(block_.coarse_minimums + a * kPanelRows, x_scales, sums, totals);
            }
        });
    }

  private:
    static constexpr bool kSigned = !S::kMinimum;
    static constexpr int kSlabSegments = static_cast<int>(kSlabInputs / kSegmentInputs);
    static constexpr int kGroupSegments = static_cast<int>(fine_group(C::kBits) / kSegmentInputs);
    static constexpr int kSegmentQuads = kSlabQuads / kSlabSegments;
    static constexpr int kGroupQuads = kSegmentQuads * kGroupSegments;
    static constexpr int kWordQuads = C::kBits <= 4 ? kGroupQuads : kSegmentQuads;
    // No format with minimums has a fine scale above 63.
    static constexpr int kMostProduct = kSigned ? (1 << (C::kBits - 1)) * 128 : ((1 << C::kBits) - 1) * 63;
    static constexpr int kExactSlabs = (1 << 24) / (kMostProduct * 127 * static_cast<int>(kSlabInputs));
    static_assert(!kSigned || kWordQuads == kSegmentQuads);

    LLMD_INLINE_MEMBER void add_128(const int8_t* inputs, int64_t stride, int64_t lines) {
        for (int64_t i = 0; i < lines; ++i) {
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                const Bytes line =
                    load_bytes(reinterpret_cast<const uint8_t*>(inputs + i * stride) + m * kLineInputs);
                store_bytes(unsigned_inputs_ + (i * kRows + m) * kLineInputs, from_byte_codes(line));
            });
        }
    }
    LLMD_INLINE_MEMBER static void clear(Sums (&sums)[kRows]) {
        unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m] = set_sums(0); });
    }
    // Calls f(group, its records, inputs of the first row) for the groups of a slab.
    template <class F>
    LLMD_INLINE_MEMBER void each_group(int64_t slab, F&& f) const {
        constexpr int kGroups = kSlabQuads / kGroupQuads;
        const int8_t* inputs = inputs_ + slab / 2 * line_stride_ + slab % 2 * kSlabInputs;
        const uint8_t* records = block_.records + 64 * kSlabQuads * slab;
        unroll<kGroups>([&](auto g) LLMD_LAMBDA {
            f(slab * kGroups + g, records + 64 * kGroupQuads * g, inputs + 4 * kGroupQuads * g);
        });
    }
    // Adds the products of a group times their fine scales.
    LLMD_INLINE_MEMBER void add_group(int64_t group, const uint8_t* records, const int8_t* inputs,
                                      Sums (&sums)[kRows]) const {
        const Bytes scale = load_bytes(block_.scales + 64 * group);
        unroll<kGroupQuads / kWordQuads>([&](auto i) LLMD_LAMBDA {
            Sums words[kRows];
            start_words(group, words);
            add_words<kWordQuads, kSigned>(records + 64 * kWordQuads * i, inputs + 4 * kWordQuads * i, words);
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                sums[m] = add_products(sums[m], words[m], {scale.low, scale.high});
            });
        });
    }
    // The sums over slabs whose groups are so few that no sum exceeds 2^24.
    LLMD_INLINE_MEMBER Totals<kRows> sum_exactly(int64_t first, int64_t last) const {
        Sums sums[kRows];
        clear(sums);
        for (; first < last; ++first) {
            each_group(first, [&](int64_t group, const uint8_t* records, const int8_t* inputs)
                                  LLMD_LAMBDA { add_group(group, records, inputs, sums); });
        }
        Totals<kRows> wide;
        unroll<kRows * kPanelVecs>(
            [&](auto i) LLMD_LAMBDA { wide.v[i] = to_float<i % kPanelVecs>(sums[i / kPanelVecs]); });
        return wide;
    }
    LLMD_INLINE_MEMBER void start_words(int64_t group, Sums (&words)[kRows]) const {
        Bytes start = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        if constexpr (kSigned) start = load_bytes(block_.starts + 64 * group);
        unroll<kRows>([&](auto m) LLMD_LAMBDA { words[m] = {start.low, start.high}; });
    }
    // Sums the fine minimums of pairs [first, last) of groups times the sums of their inputs.
    LLMD_INLINE_MEMBER void sum_minimums(int64_t first, int64_t last, Totals<kRows>& to) const {
        Sums sums[kRows];
        unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m] = set_sums(0); });
        for (int64_t i = first; i < last; ++i) {
            const Bytes minimums = load_bytes(block_.minimums + 64 * i);
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                const Sums of_inputs = set_sums(of_inputs_[i * kRows + m]);
                sums[m] = add_products(sums[m], of_inputs, {minimums.low, minimums.high});
            });
        }
        unroll<kRows * kPanelVecs>(
            [&](auto i) LLMD_LAMBDA { to.v[i] = to_float<i % kPanelVecs>(sums[i / kPanelVecs]); });
    }

    const FineBlock& block_;
    const float* x_scales_;
    int64_t rows_;  // of the tile of inputs
    const int8_t* inputs_;
    int64_t line_stride_;
    int32_t of_inputs_[kSigned ? 1 : kBlockGroups / 2 * kRows];  // two words each
    alignas(64) uint8_t unsigned_inputs_[kSigned ? kBlockInputs * kRows : 64];
};

template <class C, class S, int kRows>
void fine_tile(const FineBlock& block, const BlockShape& shape, const InputTile& x, float* totals) {
    FineTile<C, S, kRows>(block, shape, x).multiply(shape, totals);
}

template <class C, class S>
    requires(S::kTwoLevels && !C::kBook)
struct Blocks<C, S> {
    using Block = FineBlock;
    static_assert(kPanelTile == 1);

    static const uint8_t* decode(const uint8_t* at, const PanelLayout& layout, int64_t first, int64_t last,
                                 Block& to) {
        const bool bf16 = layout.format.bf16_scales;
        const Decoding<C> decoding(layout.format);
        int64_t group = 0;
        int64_t slab = 0;
        for (int64_t a = first; a < last; ++a) {
            const int64_t groups = layout.groups(a);
            const int64_t slabs = layout.slabs(a);
            widen_coarse(at, bf16, to.coarse + kPanelRows * (a - first));
            if constexpr (S::kMinimum) {
                widen_coarse(at + 2 * kPanelRows, bf16, to.coarse_minimums + kPanelRows * (a - first));
            }
            at += layout.coarse_bytes();
            decode_fine(at, at + layout.fine_scale_bytes(a), groups, group, to);
            at += layout.fine_bytes(a);
            group += groups;
            for (int64_t c = 0; c < slabs; ++c, ++slab, at += 64 * C::kBits) {
                decode_slab<C, !S::kMinimum>(at, decoding, layout.format,
                                             to.records + slab * kSlabQuads * 64);
                if constexpr (!S::kMinimum) start_slab(slab, to);
            }
        }
        return at;
    }
    static void multiply(const IntegerPanels& of, const Block* panel, const BlockShape& shape, int64_t first,
                         int64_t last, float* totals) {
        each_tile(first, last, totals, [&](int64_t r, int64_t rows, float* to) LLMD_LAMBDA {
            with_rows(rows, [&](auto n) LLMD_LAMBDA { fine_tile<C, S, n>(*panel, shape, of.inputs(r), to); });
        });
    }

  private:
    // Groups are `first` and those after it.
    LLMD_INLINE_MEMBER static void decode_fine(const uint8_t* scales, const uint8_t* minimums, int64_t groups,
                                               int64_t first, Block& to) {
        for (int64_t g = 0; g < groups; ++g) {
            const uint8_t* scale = scales + g * kPanelRows;
            store_bytes(to.scales + 64 * (first + g), words_of(scale, scale));
        }
        if constexpr (S::kMinimum) {
            for (int64_t g = 0; g < groups; g += 2) {
                const uint8_t* minimum = minimums + g * kPanelRows;
                store_bytes(to.minimums + 32 * (first + g), words_of(minimum, minimum + kPanelRows));
            }
        }
    }
    LLMD_INLINE_MEMBER static void start_slab(int64_t slab, Block& to) {
        unroll<2>([&](auto i) LLMD_LAMBDA {
            const int64_t segment = 2 * slab + i;
            store_bytes(to.starts + 64 * segment, starts_of(to.records + 64 * kSlabQuads / 2 * segment));
        });
    }
};

}  // namespace llmd::LLMD_ISA
