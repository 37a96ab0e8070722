// linear, integers, one row or few: limited by memory, so codes go straight from the stream into products.
//
//   tile     kRowPanels panels by the rows, a slab of each in turn; four chains of products per panel, or two
//            for each of several rows, hide the latency of one
//   streams  a hardware prefetcher follows a stream within a page of 4 KB and waits for memory at the next
//            page: with two streams, a thread can read the other one meanwhile

#pragma once

#include <utility>

#include "ops/codes.hpp"
#include "ops/integer_scales.hpp"
#include "ops/outliers.hpp"
#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

// Integer sums of a weight group for each row, in chains for each half of a slab.
template <class C, int kRows>
class GroupSums {
  public:
    LLMD_INLINE_MEMBER void start() {
        unroll<kRows>([&](auto m) LLMD_LAMBDA { start(m, 0); });
    }
    // Starts the sum of row m with `from`.
    LLMD_INLINE_MEMBER void start(int m, int32_t from) {
        unroll<2 * kChains>([&](auto i)
                                LLMD_LAMBDA { chains_[2 * kChains * m + i].start(i == 0 ? from : 0); });
    }
    // `segment` is the first segment of the slab's inputs.
    LLMD_INLINE_MEMBER void add_slab(const Slab<C::kBits>& slab, const Decoding<C>& decoding,
                                     const InputTile& x, int64_t segment) {
        unroll<C::kTerms>([&](auto term) LLMD_LAMBDA {
            const int8_t* inputs = x.segment(segment, term);
            unroll<kSlabQuads>([&](auto q) LLMD_LAMBDA {
                const Bytes record = record_of<C, q>(slab, decoding);
                unroll<kRows>([&](auto m) LLMD_LAMBDA {
                    constexpr int kChain = (2 * m + q / 4) * kChains + q % kChains;
                    chains_[kChain].add(record, load_quad(inputs + m * kLineInputs, q));
                });
            });
            unroll<2 * kChains * kRows>([&](auto i) LLMD_LAMBDA { chains_[i].close(); });
        });
    }
    LLMD_INLINE_MEMBER Sums half(int m, int which) const {
        const auto* of = chains_ + (2 * m + which) * kChains;
        if constexpr (kChains == 1) return of[0].sums();
        return add(of[0].sums(), of[1].sums());
    }
    LLMD_INLINE_MEMBER Sums whole(int m) const { return add(half(m, 0), half(m, 1)); }

  private:
    static constexpr int kChains = kRows == 1 ? 2 : 1;  // for half a slab of a row

    Accumulator<C::kOperand> chains_[2 * kChains * kRows];
};

// The coarse scales and minimums of an activation group.
template <class S>
struct CoarseScales {
    Vec scale[kPanelVecs];
    Vec minimum[kPanelVecs];

    LLMD_INLINE_MEMBER CoarseScales(const uint8_t* p, bool bf16) {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            scale[v] = load_coarse(p, v, bf16);
            if constexpr (S::kMinimum) minimum[v] = load_coarse(p + 2 * kPanelRows, v, bf16);
        });
    }
};

// Totals of a row and a panel, updated group by group.
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
    LLMD_INLINE_MEMBER void add_inner(const CoarseScales<S>& coarse, float x_scale) {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            total[v] = fma(inner[v], coarse.scale[v] * set1(x_scale), total[v]);
            if constexpr (S::kMinimum) {
                total[v] = fma(inner_minimum[v], coarse.minimum[v] * set1(x_scale), total[v]);
            }
        });
    }
    LLMD_INLINE_MEMBER void add_group(const Sums& sums, const CoarseScales<S>& coarse, float x_scale,
                                      int32_t q_sum) {
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            total[v] = fma(to_float<v>(sums), coarse.scale[v] * set1(x_scale), total[v]);
            if constexpr (S::kMinimum) {
                total[v] = fma(coarse.minimum[v], set1(x_scale * static_cast<float>(q_sum)), total[v]);
            }
        });
    }
};

// The panels that one kernel multiplies, and where their outputs go. A panel may appear twice.
struct RowPanels {
    const uint8_t* at[kRowPanels];
    TileOut to[kRowPanels];
};

// Rows against one panel, a slab at a time. There is one row unless scales have one level.
template <class C, class S, int kRows>
class RowPanel {
  public:
    LLMD_INLINE_MEMBER RowPanel(const uint8_t* panel, const PanelLayout& layout, const InputTile& x)
        : layout_(layout), x_(x), decoding_(layout.format), offset_(C::offset(layout.format)), at_(panel) {
        static_assert(kRows == 1 || !S::kTwoLevels);
        unroll<kRows>([&](auto m) LLMD_LAMBDA { totals_[m].clear(); });
    }

    // Begins activation group a, which has inputs of `segments` segments from `segment` on.
    LLMD_INLINE_MEMBER void begin_group(int64_t a, int64_t segment, int64_t segments) {
        coarse_ = at_;
        fine_scales_ = at_ + layout_.coarse_bytes();
        fine_minimums_ = fine_scales_ + layout_.fine_scale_bytes(a);
        outliers_ = fine_scales_ + layout_.fine_bytes(a);
        at_ = outliers_ + layout_.outlier_bytes();
        prefetch_past(coarse_, at_ - coarse_, kRowAhead);
        if constexpr (S::kTwoLevels) {
            totals_[0].clear_inner();
        } else {
            unroll<kRows>([&](auto m)
                              LLMD_LAMBDA { sums_.start(m, -offset_ * q_sum(m, segment, segments)); });
        }
    }
    // Adds the next slab, number c of its group; `segment` is the first segment of its inputs.
    LLMD_INLINE_MEMBER void add_slab(int64_t c, int64_t segment) {
        if constexpr (S::kTwoLevels) {
            sums_.start();
        } else {
            decoding_.load_scales_of(c, fine_scales_, fine_minimums_);
        }
        sums_.add_slab(load_slab<C::kBits>(at_, kRowAhead), decoding_, x_, segment);
        at_ += 64 * C::kBits;
        if constexpr (S::kTwoLevels) end_fine_groups(segment);
    }
    LLMD_INLINE_MEMBER void end_group(int64_t a, int64_t segment, int64_t segments) {
        const CoarseScales<S> coarse(coarse_, layout_.format.bf16_scales);
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const float x_scale = x_.scales[a * x_.rows + m];
            if constexpr (S::kTwoLevels) {
                totals_[m].add_inner(coarse, x_scale);
            } else {
                Sums sums = sums_.whole(m);
                if constexpr (C::kHasOutliers) sums = add(sums, Outliers(outliers_).sums(x_, segment, m));
                totals_[m].add_group(sums, coarse, x_scale, q_sum(m, segment, segments));
            }
        });
    }
    LLMD_INLINE_MEMBER void finish(const TileOut& to) const {
        unroll<kRows>([&](auto m) LLMD_LAMBDA { finish_row(to, m, totals_[m].total); });
    }

  private:
    LLMD_INLINE_MEMBER int32_t q_sum(int64_t m, int64_t segment, int64_t segments) const {
        return x_.running[(segment + segments) * x_.rows + m] - x_.running[segment * x_.rows + m];
    }
    // Ends the fine groups of a slab: there are one or two.
    LLMD_INLINE_MEMBER void end_fine_groups(int64_t segment) {
        if (layout_.format.group_size < kSlabInputs) {
            end_fine_group(sums_.half(0, 0), segment, 1);
            end_fine_group(sums_.half(0, 1), segment + 1, 1);
        } else {
            end_fine_group(sums_.whole(0), segment, 2);
        }
    }
    LLMD_INLINE_MEMBER void end_fine_group(const Sums& sums, int64_t segment, int64_t segments) {
        const int32_t of_inputs = q_sum(0, segment, segments);
        totals_[0].add_fine(add(sums, set_sums(-offset_ * of_inputs)), fine_scales_, fine_minimums_,
                            of_inputs);
        fine_scales_ += kPanelRows;
        fine_minimums_ += kPanelRows;
    }

    const PanelLayout& layout_;
    const InputTile& x_;
    Decoding<C> decoding_;
    int32_t offset_;
    RowTotals<S> totals_[kRows];
    GroupSums<C, kRows> sums_;
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

    LLMD_INLINE_MEMBER void begin_group(int64_t a, int64_t, int64_t) {
        coarse_ = at_;
        scales_ = at_ + layout_.coarse_bytes();
        minimums_ = scales_ + layout_.fine_scale_bytes(a);
        at_ = scales_ + layout_.fine_bytes(a);
        prefetch_past(coarse_, at_ - coarse_, kRowAhead);
        unroll<kRows>([&](auto m) LLMD_LAMBDA { sums_[m].start(); });
    }
    LLMD_INLINE_MEMBER void add_slab(int64_t, int64_t segment) {
        const Slab<kBits> slab = load_slab<kBits>(at_, kRowAhead);
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
        unroll<kRowPanels>([&](auto p) LLMD_LAMBDA { of[p].begin_group(a, segment, 2 * slabs); });
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

// The kernels for one row, for few rows and codes with one scale, and for few rows and codes with fine
// scales. A unit may specialise them.
template <class C, class S, Operand = C::kOperand>
struct OneRow {
    static constexpr RowKernel kernel = row_kernel<RowPanel<C, S, 1>>;
};
template <class C, class S, int kRows>
struct CodeRows {
    static constexpr RowKernel kernel = row_kernel<RowPanel<C, S, kRows>>;
};
template <int kRows, Operand = operand_of(8, false)>
struct ScaledRows {
    static constexpr RowKernel kernel = row_kernel<ScaledPanel<kRows>>;
};

// The kernel for codes C with scales S and a number of rows; null if there are too many.
template <class C, class S, int kRows = kCodeRows>
LLMD_INLINE RowKernel code_kernel(int64_t rows) {
    if (rows == 1) return OneRow<C, S>::kernel;
    if constexpr (kRows > 1 && C::kBits == 4 && C::kScaleSegments == 0 && !S::kTwoLevels) {
        if (rows == kRows) return CodeRows<C, S, kRows>::kernel;
        return code_kernel<C, S, kRows - 1>(rows);
    }
    return nullptr;
}

// The kernel for codes with fine scales and a number of rows; null if there are too many, or if the format
// has other codes.
template <int kRows = kScaledRows>
LLMD_INLINE RowKernel scaled_kernel(const IntegerFormat& format, int64_t rows) {
    if (!format.nibble_scales() || rows > kRows) return nullptr;
    if constexpr (kRows > 1) {
        if (rows < kRows) return scaled_kernel<kRows - 1>(format, rows);
    }
    return ScaledRows<kRows>::kernel;
}

}  // namespace llmd::LLMD_ISA
