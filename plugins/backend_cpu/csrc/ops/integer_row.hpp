// linear, integers, one row: limited by memory, so codes go straight from the stream into products.
//
//   tile     kRowPanels panels by one row, a slab of each in turn; four chains of products per panel hide
//            the latency of one
//   streams  a hardware prefetcher follows a stream within a page of 4 KB and waits for memory at the next
//            page: with two streams, a thread can read the other one meanwhile

#pragma once

#include <utility>

#include "ops/codes.hpp"
#include "ops/integer_scales.hpp"
#include "ops/outliers.hpp"
#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

// Integer sums of a weight group: two chains for each half of a slab.
template <class C>
struct GroupSums {
    Accumulator<C::kOperand> chains[4];

    LLMD_INLINE_MEMBER void start() {
        unroll<4>([&](auto i) LLMD_LAMBDA { chains[i].start(0); });
    }
    // `segment` is the first segment of the slab's inputs.
    LLMD_INLINE_MEMBER void add_slab(const Slab<C::kBits>& slab, const Decoding<C>& decoding,
                                     const InputTile& x, int64_t segment) {
        unroll<C::kTerms>([&](auto term) LLMD_LAMBDA {
            const int8_t* inputs = x.segment(segment, term);
            unroll<kSlabQuads>([&](auto q) LLMD_LAMBDA {
                chains[q / 4 * 2 + q % 2].add(record_of<C, q>(slab, decoding), load_quad(inputs, q));
            });
            unroll<4>([&](auto i) LLMD_LAMBDA { chains[i].close(); });
        });
    }
    LLMD_INLINE_MEMBER Sums half(int which) const {
        return add(chains[2 * which].sums(), chains[2 * which + 1].sums());
    }
};

// Totals of a panel, updated group by group.
template <class S>
struct RowTotals {
    Vec total[kPanelVecs];
    Vec inner[kPanelVecs];
    Vec inner_minimum[kPanelVecs];

    LLMD_INLINE_MEMBER void clear() {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA { total[v] = set1(0.0F); });
    }
    LLMD_INLINE_MEMBER void clear_inner() {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA { inner[v] = inner_minimum[v] = set1(0.0F); });
    }
    // Adds a weight group with its fine scales and minimums.
    LLMD_INLINE_MEMBER void add_fine(const Sums& sums, const uint8_t* scales, const uint8_t* minimums,
                                     int32_t q_sum) {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            inner[v] = fma(to_float<v>(sums), load_fine(scales, v), inner[v]);
            if constexpr (S::kMinimum) {
                inner_minimum[v] =
                    fma(load_fine(minimums, v), set1(static_cast<float>(q_sum)), inner_minimum[v]);
            }
        });
    }
    LLMD_INLINE_MEMBER void add_inner(const uint8_t* coarse, bool bf16, float x_scale) {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            total[v] = fma(inner[v], load_coarse(coarse, v, bf16) * set1(x_scale), total[v]);
            if constexpr (S::kMinimum) {
                const Vec minimum = load_coarse(coarse + 2 * kPanelRows, v, bf16) * set1(x_scale);
                total[v] = fma(inner_minimum[v], minimum, total[v]);
            }
        });
    }
    LLMD_INLINE_MEMBER void add_group(const Sums& sums, const uint8_t* coarse, bool bf16, float x_scale,
                                      int32_t q_sum) {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            total[v] = fma(to_float<v>(sums), load_coarse(coarse, v, bf16) * set1(x_scale), total[v]);
            if constexpr (S::kMinimum) {
                const Vec minimum = load_coarse(coarse + 2 * kPanelRows, v, bf16);
                total[v] = fma(minimum, set1(x_scale * static_cast<float>(q_sum)), total[v]);
            }
        });
    }
};

// The panels that one kernel multiplies, and where their outputs go. A panel may appear twice.
struct RowPanels {
    const uint8_t* at[kRowPanels];
    TileOut to[kRowPanels];
};

// One row against one panel, a slab at a time.
template <class C, class S>
class RowPanel {
  public:
    LLMD_INLINE_MEMBER RowPanel(const uint8_t* panel, const PanelLayout& layout, const InputTile& x)
        : layout_(layout), x_(x), decoding_(layout.format), offset_(C::offset(layout.format)), at_(panel) {
        totals_.clear();
    }

    LLMD_INLINE_MEMBER void begin_group(int64_t a) {
        coarse_ = at_;
        fine_scales_ = at_ + layout_.coarse_bytes();
        fine_minimums_ = fine_scales_ + layout_.fine_scale_bytes(a);
        outliers_ = fine_scales_ + layout_.fine_bytes(a);
        at_ = outliers_ + layout_.outlier_bytes();
        prefetch_past<kRowAhead>(coarse_, at_ - coarse_);
        if constexpr (S::kTwoLevels) {
            totals_.clear_inner();
        } else {
            sums_.start();
        }
    }
    // Adds the next slab, number c of its group; `segment` is the first segment of its inputs.
    LLMD_INLINE_MEMBER void add_slab(int64_t c, int64_t segment) {
        if constexpr (S::kTwoLevels) {
            sums_.start();
        } else {
            decoding_.load_scales_of(c, fine_scales_, fine_minimums_);
        }
        sums_.add_slab(load_slab<C::kBits, kRowAhead>(at_), decoding_, x_, segment);
        at_ += 64 * C::kBits;
        if constexpr (S::kTwoLevels) end_fine_groups(segment);
    }
    LLMD_INLINE_MEMBER void end_group(int64_t a, int64_t segment, int64_t segments) {
        const float x_scale = x_.scales[a * x_.rows];
        if constexpr (S::kTwoLevels) {
            totals_.add_inner(coarse_, layout_.format.bf16_scales, x_scale);
        } else {
            const int32_t of_inputs = q_sum(segment, segments);
            Sums sums = less_offset(add(sums_.half(0), sums_.half(1)), of_inputs);
            if constexpr (C::kHasOutliers) sums = add(sums, Outliers(outliers_).sums(x_, segment, 0));
            totals_.add_group(sums, coarse_, layout_.format.bf16_scales, x_scale, of_inputs);
        }
    }
    LLMD_INLINE_MEMBER void finish(const TileOut& to) const { finish_row(to, 0, totals_.total); }

  private:
    LLMD_INLINE_MEMBER int32_t q_sum(int64_t segment, int64_t segments) const {
        return x_.running[(segment + segments) * x_.rows] - x_.running[segment * x_.rows];
    }
    // Subtracts the offset of the codes from sums of products.
    LLMD_INLINE_MEMBER Sums less_offset(const Sums& sums, int32_t q_sum) const {
        return add(sums, set_sums(-offset_ * q_sum));
    }
    // Ends the fine groups of a slab: there are one or two.
    LLMD_INLINE_MEMBER void end_fine_groups(int64_t segment) {
        if (layout_.format.group_size < kSlabInputs) {
            end_fine_group(sums_.half(0), segment, 1);
            end_fine_group(sums_.half(1), segment + 1, 1);
        } else {
            end_fine_group(add(sums_.half(0), sums_.half(1)), segment, 2);
        }
    }
    LLMD_INLINE_MEMBER void end_fine_group(const Sums& sums, int64_t segment, int64_t segments) {
        const int32_t of_inputs = q_sum(segment, segments);
        totals_.add_fine(less_offset(sums, of_inputs), fine_scales_, fine_minimums_, of_inputs);
        fine_scales_ += kPanelRows;
        fine_minimums_ += kPanelRows;
    }

    const PanelLayout& layout_;
    const InputTile& x_;
    Decoding<C> decoding_;
    int32_t offset_;
    RowTotals<S> totals_;
    GroupSums<C> sums_;
    // The next byte, and the parts of the current group's header.
    const uint8_t* at_;
    const uint8_t* coarse_ = nullptr;
    const uint8_t* fine_scales_ = nullptr;
    const uint8_t* fine_minimums_ = nullptr;
    const uint8_t* outliers_ = nullptr;
};

// Up to kScaledRows rows against one panel of 4-bit codes with fine scales, which multiply the sums of 32
// codes.
template <int kRows>
class ScaledPanel {
  public:
    LLMD_INLINE_MEMBER ScaledPanel(const uint8_t* panel, const PanelLayout& layout, const InputTile& x)
        : layout_(layout), x_(x), at_(panel) {
        unroll<kRows * kPanelVecs>([&](auto i) LLMD_LAMBDA { totals_[i] = set1(0.0F); });
    }

    LLMD_INLINE_MEMBER void begin_group(int64_t a) {
        coarse_ = at_;
        scales_ = at_ + layout_.coarse_bytes();
        minimums_ = scales_ + layout_.fine_scale_bytes(a);
        at_ = scales_ + layout_.fine_bytes(a);
        prefetch_past<kRowAhead>(coarse_, at_ - coarse_);
        unroll<kRows>([&](auto m) LLMD_LAMBDA { sums_[m].start(); });
    }
    LLMD_INLINE_MEMBER void add_slab(int64_t, int64_t segment) {
        const Slab<kBits> slab = load_slab<kBits, kRowAhead>(at_);
        const int8_t* inputs = x_.segment(segment);
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            sums_[m].add(slab.planes, scales_, minimums_, inputs + m * kLineInputs, q_sum(m, segment, 2));
        });
        at_ += 64 * kBits;
        scales_ += kPanelRows / 2;
        minimums_ += kPanelRows;
    }
    LLMD_INLINE_MEMBER void end_group(int64_t a, int64_t segment, int64_t segments) {
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const int32_t offset = kBiasOfSigned * q_sum(m, segment, segments);
            const Sums sum = add(sums_[m].sums(), set_sums(-offset));
            const Vec x_scale = set1(x_.scales[a * x_.rows + m]);
            unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
                Vec& total = totals_[m * kPanelVecs + v];
                total = fma(to_float<v>(sum), load_coarse(coarse_, v, false) * x_scale, total);
            });
        });
    }
    LLMD_INLINE_MEMBER void finish(const TileOut& to) const {
        unroll<kRows>([&](auto m) LLMD_LAMBDA { finish_row(to, m, totals_ + m * kPanelVecs); });
    }

  private:
    static constexpr int kBits = 4;

    LLMD_INLINE_MEMBER int32_t q_sum(int64_t m, int64_t segment, int64_t segments) const {
        return x_.running[(segment + segments) * x_.rows + m] - x_.running[segment * x_.rows + m];
    }

    const PanelLayout& layout_;
    const InputTile& x_;
    ScaledSums sums_[kRows];
    Vec totals_[kRows * kPanelVecs];
    // The next byte, and the scales of the current group.
    const uint8_t* at_;
    const uint8_t* coarse_ = nullptr;
    const uint8_t* scales_ = nullptr;
    const uint8_t* minimums_ = nullptr;
};

using RowKernel = void (*)(const RowPanels&, const PanelLayout&, const InputTile&);

// The rows against several panels, a slab of each in turn.
template <class Panel, size_t... kPlaces>
LLMD_INLINE void multiply_panels(const RowPanels& panels, const PanelLayout& layout, const InputTile& x,
                                 std::index_sequence<kPlaces...>) {
    Panel of[] = {Panel(panels.at[kPlaces], layout, x)...};
    const int64_t segments = layout.format.activation_group() / kSegmentInputs;
    for (int64_t a = 0; a < layout.activation_groups(); ++a) {
        const int64_t segment = a * segments;
        const int64_t slabs = layout.slabs(a);
        unroll<kRowPanels>([&](auto p) LLMD_LAMBDA { of[p].begin_group(a); });
        for (int64_t c = 0; c < slabs; ++c) {
            unroll<kRowPanels>([&](auto p) LLMD_LAMBDA { of[p].add_slab(c, segment + 2 * c); });
        }
        unroll<kRowPanels>([&](auto p) LLMD_LAMBDA { of[p].end_group(a, segment, 2 * slabs); });
    }
    unroll<kRowPanels>([&](auto p) LLMD_LAMBDA { of[p].finish(panels.to[p]); });
}
template <class Panel>
void row_kernel(const RowPanels& panels, const PanelLayout& layout, const InputTile& x) {
    multiply_panels<Panel>(panels, layout, x, std::make_index_sequence<kRowPanels>());
}

// The kernels for one row, and for several rows and codes with fine scales. A unit may specialise them.
template <class C, class S, Operand = C::kOperand>
struct OneRow {
    static constexpr RowKernel kernel = row_kernel<RowPanel<C, S>>;
};
template <int kRows, Operand = operand_of(8, false)>
struct ScaledRows {
    static constexpr RowKernel kernel = row_kernel<ScaledPanel<kRows>>;
};

// The kernel for a number of rows; null if there are too many, or if the format has other codes.
template <int kRows = kScaledRows>
LLMD_INLINE RowKernel scaled_kernel(const IntegerFormat& format, int64_t rows) {
    if (!format.nibble_scales() || rows > kRows) return nullptr;
    if constexpr (kRows > 1) {
        if (rows < kRows) return scaled_kernel<kRows - 1>(format, rows);
    }
    return ScaledRows<kRows>::kernel;
}

}  // namespace llmd::LLMD_ISA
