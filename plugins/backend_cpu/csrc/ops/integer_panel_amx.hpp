// linear, integers, up to 16 rows, in tiles of AMX: a panel, read as one stream.
//
//   line   64 inputs, decoded while tiles multiply those before: tiles and vectors work at once, and what is
//          asked of memory is spread
//   group  its sums take turns between two registers, so that it ends while the next is multiplied
//   where  groups of 64 inputs or more

#pragma once

#include "ops/integer_tile_amx.hpp"

namespace llmd::LLMD_ISA {

template <class C>
class AmxPanel {
  public:
    LLMD_INLINE_MEMBER AmxPanel(const PanelLayout& layout, const InputTile& x)
        : layout_(layout), x_(x), decoding_(layout.format) {}

    // Adds to totals, 16 for each row.
    LLMD_INLINE_MEMBER void multiply(const uint8_t* panel, float* totals) {
        const int64_t groups = layout_.activation_groups();
        at_ = panel;
        inputs_ = x_.values;
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
    static constexpr int64_t kLineChunks = kLineInputs / kChunkInputs;

    struct Group {
        alignas(64) int32_t sums[kTileRows * kPanelRows];
        const uint8_t* scales;
        const uint8_t* outliers;
    };

    template <int kTurn>
    LLMD_INLINE_MEMBER void multiply_group(int64_t a) {
        Group& group = groups_[kTurn];
        const int64_t chunks = layout_.chunks(a);
        const uint8_t* fine_scales = at_ + layout_.coarse_bytes();
        const uint8_t* fine_minimums = fine_scales + layout_.fine_scale_bytes(a);
        group.scales = at_;
        group.outliers = fine_scales + layout_.fine_bytes(a);
        at_ = group.outliers + layout_.outlier_bytes();
        asm volatile("tilezero %%tmm%c0" : : "i"(kTurn));
        for (int64_t c = 0; c < chunks; c += kLineChunks) {
            uint8_t* records = records_[turn_ = (turn_ + 1) % kLines];
            for (int64_t i = 0; i < kLineChunks && c + i < chunks; ++i, at_ += 64 * C::kBits) {
                decoding_.load_steps_of(c + i, fine_scales, fine_minimums);
                decode_chunk<C, true>(at_, decoding_, layout_.format, records + i * kTileBytes / kLineChunks);
            }
            multiply_line<kTurn>(records);
        }
        asm volatile("tilestored %%tmm%c2, (%0, %1, 1)"
                     :
                     : "r"(group.sums), "r"(kLineInputs), "i"(kTurn)
                     : "memory");
    }

    template <int kTurn>
    LLMD_INLINE_MEMBER void multiply_line(const uint8_t* records) {
        asm volatile(
            "tileloadd (%1, %2, 1), %%tmm6\n\t"
            "tileloadd (%0, %2, 1), %%tmm4\n\t"
            "tdpbssd %%tmm6, %%tmm4, %%tmm%c3"
            :
            : "r"(inputs_), "r"(records), "r"(kLineInputs), "i"(kTurn)
            : "memory");
        if constexpr (C::kTerms > 1) {
            asm volatile(
                "tileloadd (%0, %1, 1), %%tmm5\n\t"
                "tdpbssd %%tmm6, %%tmm5, %%tmm%c2"
                :
                : "r"(inputs_ + x_.term_bytes), "r"(kLineInputs), "i"(kTurn)
                : "memory");
        }
        inputs_ += x_.rows * kLineInputs;
    }

    template <int kTurn>
    LLMD_INLINE_MEMBER void end_group(int64_t a, float* totals) {
        const Group& group = groups_[kTurn];
        const Vec scale = load_coarse(group.scales, 0, layout_.format.bf16_scales);
        const float* x_scales = x_.scales + a * x_.rows;
        const int64_t unit = a * layout_.format.activation_group() / kUnitInputs;
        const ByteOutliers outliers(C::kHasOutliers ? group.outliers : records_[0]);
        for (int64_t m = 0; m < x_.rows; ++m) {
            Sums sums = load_sums(group.sums + m * kPanelRows);
            if constexpr (C::kHasOutliers) sums = add(sums, outliers.sums(x_, unit, m));
            float* total = totals + m * kPanelRows;
            store(total, fma(to_float<0>(sums), scale * set1(x_scales[m]), load(total)));
        }
    }

    static constexpr int64_t kLines = 4;

    const PanelLayout& layout_;
    const InputTile& x_;
    Decoding<C> decoding_;
    // What comes next.
    const uint8_t* at_ = nullptr;
    const int8_t* inputs_ = nullptr;
    int64_t turn_ = 0;
    Group groups_[2];
    alignas(64) uint8_t records_[kLines][kTileBytes];
};

}  // namespace llmd::LLMD_ISA
