// linear, integers, up to 16 rows, in AMX tiles: two panels, each read as a stream of its own.
//
//   line     64 inputs, decoded while tiles multiply the previous line: tile and vector units work at the
//            same time, and memory reads are spread out; activations are loaded once for both panels
//   group    sums alternate between two registers: one group is finished while the next is multiplied
//   streams  as with one row, ops/integer_row.hpp
//   where    groups of 64 inputs or more

#pragma once

#include "ops/integer_tile_amx.hpp"

namespace llmd::LLMD_ISA {

template <class C>
class AmxPanels {
  public:
    LLMD_INLINE_MEMBER AmxPanels(const RowPanels& panels, const PanelLayout& layout, const InputTile& x)
        : layout_(layout), x_(x), decoding_(layout.format), inputs_(x.values) {
        unroll<kRowPanels>([&](auto p) LLMD_LAMBDA { streams_[p].at = panels.at[p]; });
    }

    // Adds to totals: for each panel, 16 for each row.
    LLMD_INLINE_MEMBER void multiply(float (&totals)[kRowPanels][kTileRows * kPanelRows]) {
        const int64_t groups = layout_.activation_groups();
        for (int64_t a = 0; a < groups; a += 2) {
            multiply_group<0>(a);
            if (a > 0) end_group<1>(a - 1, totals);
            if (a + 1 == groups) return end_group<0>(a, totals);
            multiply_group<1>(a + 1);
            end_group<0>(a, totals);
        }
        end_group<1>(groups - 1, totals);
    }

  private:
    static_assert(kRowPanels == 2);
    static constexpr int64_t kLineSlabs = kLineInputs / kSlabInputs;
    static constexpr int64_t kLines = 4;

    struct Group {
        alignas(64) int32_t sums[kTileRows * kPanelRows];
        const uint8_t* scales;
        const uint8_t* fine_scales;
        const uint8_t* fine_minimums;
        const uint8_t* outliers;
    };
    struct Stream {
        alignas(64) uint8_t records[kLines][kTileBytes];
        Group groups[2];
        const uint8_t* at;  // the next byte
    };

    template <int kTurn>
    LLMD_INLINE_MEMBER void multiply_group(int64_t a) {
        const int64_t slabs = layout_.slabs(a);
        unroll<kRowPanels>([&](auto p) LLMD_LAMBDA {
            begin_group(a, streams_[p], streams_[p].groups[kTurn]);
            asm volatile("tilezero %%tmm%c0" : : "i"(2 * p + kTurn));
        });
        for (int64_t c = 0; c < slabs; c += kLineSlabs) {
            turn_ = (turn_ + 1) % kLines;
            unroll<kRowPanels>(
                [&](auto p) LLMD_LAMBDA { decode_line(c, slabs, streams_[p], streams_[p].groups[kTurn]); });
            multiply_line<kTurn>(streams_[0].records[turn_], streams_[1].records[turn_]);
        }
        unroll<kRowPanels>([&](auto p) LLMD_LAMBDA {
            asm volatile("tilestored %%tmm%c2, (%0, %1, 1)"
                         :
                         : "r"(streams_[p].groups[kTurn].sums), "r"(kLineInputs), "i"(2 * p + kTurn)
                         : "memory");
        });
    }

    LLMD_INLINE_MEMBER void begin_group(int64_t a, Stream& stream, Group& group) {
        group.scales = stream.at;
        group.fine_scales = stream.at + layout_.coarse_bytes();
        group.fine_minimums = group.fine_scales + layout_.fine_scale_bytes(a);
        group.outliers = group.fine_scales + layout_.fine_bytes(a);
        stream.at = group.outliers + layout_.outlier_bytes();
    }
    // Decodes a line of slabs, beginning with slab c.
    LLMD_INLINE_MEMBER void decode_line(int64_t c, int64_t slabs, Stream& stream, const Group& group) {
        uint8_t* records = stream.records[turn_];
        for (int64_t i = 0; i < kLineSlabs && c + i < slabs; ++i, stream.at += 64 * C::kBits) {
            decoding_.load_scales_of(c + i, group.fine_scales, group.fine_minimums);
            decode_slab<C, true>(stream.at, decoding_, layout_.format, records + i * kTileBytes / kLineSlabs);
        }
    }

    template <int kTurn>
    LLMD_INLINE_MEMBER void multiply_line(const uint8_t* first, const uint8_t* second) {
        asm volatile(
            "tileloadd (%1, %3, 1), %%tmm6\n\t"
            "tileloadd (%0, %3, 1), %%tmm4\n\t"
            "tdpbssd %%tmm6, %%tmm4, %%tmm%c4\n\t"
            "tileloadd (%2, %3, 1), %%tmm7\n\t"
            "tdpbssd %%tmm7, %%tmm4, %%tmm%c5"
            :
            : "r"(inputs_), "r"(first), "r"(second), "r"(kLineInputs), "i"(kTurn), "i"(2 + kTurn)
            : "memory");
        if constexpr (C::kTerms > 1) {
            asm volatile(
                "tileloadd (%0, %1, 1), %%tmm5\n\t"
                "tdpbssd %%tmm6, %%tmm5, %%tmm%c2\n\t"
                "tdpbssd %%tmm7, %%tmm5, %%tmm%c3"
                :
                : "r"(inputs_ + x_.term_bytes), "r"(kLineInputs), "i"(kTurn), "i"(2 + kTurn)
                : "memory");
        }
        inputs_ += x_.rows * kLineInputs;
    }

    template <int kTurn>
    LLMD_INLINE_MEMBER void end_group(int64_t a, float (&totals)[kRowPanels][kTileRows * kPanelRows]) {
        const float* x_scales = x_.scales + a * x_.rows;
        const int64_t segment = a * layout_.format.activation_group() / kSegmentInputs;
        unroll<kRowPanels>([&](auto p) LLMD_LAMBDA {
            const Group& group = streams_[p].groups[kTurn];
            const Vec scale = load_coarse(group.scales, 0, layout_.format.bf16_scales);
            const ByteOutliers outliers(C::kHasOutliers ? group.outliers : streams_[p].records[0]);
            for (int64_t m = 0; m < x_.rows; ++m) {
                Sums sums = load_sums(group.sums + m * kPanelRows);
                if constexpr (C::kHasOutliers) sums = add(sums, outliers.sums(x_, segment, m));
                float* total = totals[p] + m * kPanelRows;
                store(total, fma(to_float<0>(sums), scale * set1(x_scales[m]), load(total)));
            }
        });
    }

    const PanelLayout& layout_;
    const InputTile& x_;
    Decoding<C> decoding_;
    const int8_t* inputs_;  // the next line
    int64_t turn_ = 0;
    Stream streams_[kRowPanels];
};

// Up to 16 rows against two panels.
template <class C>
void amx_row_kernel(const RowPanels& panels, const PanelLayout& layout, const InputTile& x) {
    alignas(64) float totals[kRowPanels][kTileRows * kPanelRows] = {};
    AmxPanels<C>(panels, layout, x).multiply(totals);
    for (int p = 0; p < kRowPanels; ++p) {
        for (int64_t m = 0; m < x.rows; ++m) finish_panel(panels.to[p], m, 0, totals[p] + m * kPanelRows);
    }
}

}  // namespace llmd::LLMD_ISA
