// One row's nonzero inputs against a band: 4 panels of a strip, 64 outputs.
//
//   records  four nonzero inputs become a record of each panel, as if they had been neighbours
//   order    integer sums are exact in any order. Then as in ops/integer_scales.hpp, but without the
//            groups of zeros, which add zero if scales are finite: the same bits as with panels

#pragma once

#include "ops/active_inputs.hpp"
#include "ops/integer_row.hpp"

namespace llmd::LLMD_ISA {

// An activation group of a strip, and what all its bands share.
struct StripGroup {
    const uint8_t* headers;
    const uint8_t* codes;
    int64_t header_bytes;  // of one panel
    int64_t fine_scales;   // offset in a header
    int64_t fine_minimums;
    int64_t outliers;
    int64_t number;
    int64_t first_fine_group;  // index in the row
    int64_t num_fine_groups;
    int64_t first_segment;
    int32_t offset;  // of codes
    bool bf16_scales;

    LLMD_INLINE_MEMBER StripGroup(const StripLayout& layout, const uint8_t* strip, int64_t a, int32_t offset)
        : headers(strip + layout.headers(a)),
          codes(strip + layout.codes(a)),
          header_bytes(layout.panel.header_bytes(a)),
          fine_scales(layout.panel.coarse_bytes()),
          fine_minimums(fine_scales + layout.panel.fine_scale_bytes(a)),
          outliers(fine_scales + layout.panel.fine_bytes(a)),
          number(a),
          first_fine_group(a * fine_groups(layout.panel, 0)),
          num_fine_groups(fine_groups(layout.panel, a)),
          first_segment(a * layout.panel.format.activation_group() / kSegmentInputs),
          offset(offset),
          bf16_scales(layout.panel.format.bf16_scales) {}
};

LLMD_INLINE void load_totals(const float* from, Vec* to) {
    unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA { to[v] = load(from + v * Vec::kLanes); });
}
LLMD_INLINE void store_totals(const Vec* from, float* to) {
    unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA { store(to + v * Vec::kLanes, from[v]); });
}

// Loads the codes of a band for one input, a byte each, from the planes of the input.
template <class C>
class BandCodes {
  public:
    LLMD_INLINE_MEMBER explicit BandCodes(int64_t band) {
        unroll<kPlanes>([&](auto i) LLMD_LAMBDA {
            constexpr int64_t kBands = 8 / kWidths[i];
            at_[i] = 64 * (kFirst[i] + band / kBands);
            shift_[i] = static_cast<int>(band % kBands) * kWidths[i];
        });
    }
    LLMD_INLINE_MEMBER Bytes load(const uint8_t* slab) const {
        if constexpr (C::kBits == 8) {
            return from_byte_codes(load_bytes(slab + at_[0]));
        } else {
            const Bytes low = field<0, (1 << kWidths[0]) - 1>(shifted(slab, 0));
            if constexpr (kPlanes == 1) return low;
            return with_field<-kWidths[0], ((1 << kWidths[1]) - 1) << kWidths[0]>(low, shifted(slab, 1));
        }
    }

  private:
    static constexpr int kPlanes = C::kBits == 3 || C::kBits == 5 || C::kBits == 6 ? 2 : 1;
    static constexpr int kWidths[2] = {C::kBits == 3  ? 2
                                       : kPlanes == 2 ? 4
                                                      : C::kBits,
                                       C::kBits == 6 ? 2 : 1};
    static constexpr int64_t kFirst[2] = {0, kWidths[0]};  // first record of each plane

    LLMD_INLINE_MEMBER Bytes shifted(const uint8_t* slab, int plane) const {
        return shift_down(load_bytes(slab + at_[plane]), shift_[plane]);
    }

    int64_t at_[kPlanes];
    int shift_[kPlanes];
};

template <class C, class S>
class BandRow {
  public:
    LLMD_INLINE_MEMBER BandRow(const StripGroup& of, int64_t band, const InputTile& x,
                               const ActiveInputs& active, const Book& book)
        : of_(of),
          headers_(of.headers + band * kBandPanels * of.header_bytes),
          codes_(band),
          x_(x),
          active_(active),
          book_(book) {}

    // Adds to totals, [4 panels][16].
    LLMD_INLINE_MEMBER void add_to(float* totals) {
        const int32_t* ends = active_.ends + of_.first_fine_group;
        int64_t four = ends[-1];
        if (four == ends[of_.num_fine_groups - 1]) return;
        each_panel([&](auto p) LLMD_LAMBDA { begin_group(p); });
        for (int64_t g = 0; g < of_.num_fine_groups; four = ends[g++]) {
            if (four < ends[g]) add_fine_group(g, four, ends[g]);
        }
        each_panel([&](auto p) LLMD_LAMBDA { end_group(p, totals + p * kPanelRows); });
    }

  private:
    static constexpr int kPanels = static_cast<int>(kBandPanels);
    static constexpr bool kScaled = C::kScaleSegments > 0;
    // The scale multiplies sums of codes, not each code.
    static constexpr Operand kOperand = kScaled ? operand_of(C::kBits, false) : C::kOperand;
    // 4 * 4 * 15 * 127 fits in 16 bits, as required of factors of a scale.
    static constexpr int64_t kMostFours = kScaled ? 4 : int64_t{1} << 32;

    template <class F>
    LLMD_INLINE_MEMBER void each_panel(F&& f) {
        if constexpr (kUnrollsBands) {
            unroll<kPanels>(f);
        } else {
            for (int p = 0; p < kPanels; ++p) f(p);
        }
    }
    LLMD_INLINE_MEMBER void begin_group(int p) {
        if constexpr (kScaled) scaled_[p] = set_sums(0);
        if constexpr (S::kTwoLevels) totals_[p].clear_inner();
        sums_[p].start(0);
    }
    LLMD_INLINE_MEMBER void add_fine_group(int64_t g, int64_t four, int64_t end) {
        if constexpr (kScaled) {
            for (; four < end; four += kMostFours) {
                each_panel([&](auto p) LLMD_LAMBDA { sums_[p].start(0); });
                for (int64_t i = four; i < end && i < four + kMostFours; ++i) add_four(i);
                each_panel([&](auto p) LLMD_LAMBDA { add_scaled(p, g); });
            }
            const Sums of_inputs = set_sums(active_.sums[of_.first_fine_group + g]);
            each_panel([&](auto p) LLMD_LAMBDA {
                const Sums minimums = widen_row_scales<false>(fine_minimums(p) + g * kPanelRows);
                scaled_[p] = add_products(scaled_[p], of_inputs, minimums);
            });
        } else {
            for (; four < end; ++four) add_four(four);
            if constexpr (S::kTwoLevels) end_fine_group(g);
        }
    }
    LLMD_INLINE_MEMBER void add_scaled(int p, int64_t g) {
        constexpr int64_t kScaleBytes = kPanelRows / (C::kNibbleScales ? 2 : 1);
        const Sums scales = widen_row_scales<C::kNibbleScales>(fine_scales(p) + g * kScaleBytes);
        scaled_[p] = add_products(scaled_[p], sums_[p].sums(), scales);
    }
    LLMD_INLINE_MEMBER void add_four(int64_t four) {
        const int32_t* places = active_.places + 4 * four;
        const Bytes inputs[4] = {codes_.load(of_.codes + places[0]), codes_.load(of_.codes + places[1]),
                                 codes_.load(of_.codes + places[2]), codes_.load(of_.codes + places[3])};
        Bytes records[kPanels];
        zip(inputs, records);
        each_panel([&](auto p) LLMD_LAMBDA {
            if constexpr (C::kBook) records[p] = look_up(book_, records[p]);
            unroll<C::kTerms>([&](auto term) LLMD_LAMBDA {
                sums_[p].add(records[p], load_quad(active_.inputs(four, term), 0));
                sums_[p].close();
            });
        });
    }
    LLMD_INLINE_MEMBER const uint8_t* header(int p) const { return headers_ + p * of_.header_bytes; }
    LLMD_INLINE_MEMBER const uint8_t* fine_scales(int p) const { return header(p) + of_.fine_scales; }
    LLMD_INLINE_MEMBER const uint8_t* fine_minimums(int p) const { return header(p) + of_.fine_minimums; }
    LLMD_INLINE_MEMBER void end_fine_group(int64_t g) {
        const int32_t of_inputs = active_.sums[of_.first_fine_group + g];
        const Sums offset = set_sums(-of_.offset * of_inputs);
        each_panel([&](auto p) LLMD_LAMBDA {
            totals_[p].add_fine(add(sums_[p].sums(), offset), fine_scales(p) + g * kPanelRows,
                                fine_minimums(p) + g * kPanelRows, of_inputs);
            sums_[p].start(0);
        });
    }
    LLMD_INLINE_MEMBER void end_group(int p, float* total) {
        const float x_scale = x_.scales[of_.number * x_.rows];
        load_totals(total, totals_[p].total);
        if constexpr (S::kTwoLevels) {
            totals_[p].add_inner({header(p), of_.bf16_scales}, x_scale);
        } else {
            const int32_t of_inputs = active_.group_sums[of_.number];
            Sums sums = add(kScaled ? scaled_[p] : sums_[p].sums(), set_sums(-of_.offset * of_inputs));
            if constexpr (C::kHasOutliers) {
                sums = add(sums, Outliers(header(p) + of_.outliers).sums(x_, of_.first_segment, 0));
            }
            totals_[p].add_group(sums, {header(p), of_.bf16_scales}, x_scale, of_inputs);
        }
        store_totals(totals_[p].total, total);
    }

    const StripGroup& of_;
    const uint8_t* headers_;
    const BandCodes<C> codes_;
    const InputTile& x_;
    const ActiveInputs& active_;
    const Book& book_;
    Accumulator<kOperand> sums_[kPanels];
    Sums scaled_[kPanels];
    RowTotals<S> totals_[kPanels];
};

}  // namespace llmd::LLMD_ISA
