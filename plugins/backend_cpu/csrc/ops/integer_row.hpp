// linear, integers, one row: bound by memory, so codes go from the stream straight into products.
//
//   tile   one panel by one row; four chains of products hide the latency of one

#pragma once

#include "ops/codes.hpp"
#include "ops/integer_scales.hpp"
#include "ops/outliers.hpp"
#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

// Integer sums of a weight group: two chains for each half of a chunk.
template <class C>
struct GroupSums {
    Accumulator<C::kOperand> chains[4];

    LLMD_INLINE_MEMBER void start() {
        unroll<4>([&](auto i) LLMD_LAMBDA { chains[i].start(0); });
    }
    // The chunk's inputs begin at a unit.
    LLMD_INLINE_MEMBER void add_chunk(const Chunk<C::kBits>& chunk, const Decoding<C>& decoding,
                                      const InputTile& x, int64_t unit) {
        unroll<C::kTerms>([&](auto term) LLMD_LAMBDA {
            const int8_t* inputs = x.unit(unit, term);
            unroll<kChunkQuads>([&](auto q) LLMD_LAMBDA {
                chains[q / 4 * 2 + q % 2].add(record_of<C, q>(chunk, decoding), load_quad(inputs, q));
            });
            unroll<4>([&](auto i) LLMD_LAMBDA { chains[i].close(); });
        });
    }
    LLMD_INLINE_MEMBER Sums half(int which) const {
        return add(chains[2 * which].sums(), chains[2 * which + 1].sums());
    }
};

// Totals of a panel, as its groups come by.
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
    // A weight group with its fine scales and minimums.
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

template <class C, class S>
struct RowPanel {
    const PanelLayout& layout;
    const InputTile& x;
    Decoding<C> decoding;
    int32_t offset;
    RowTotals<S> totals;
    GroupSums<C> group;

    // Sums of a weight group of `units` that begins at `unit`: products less the offset of the codes.
    LLMD_INLINE_MEMBER Sums less_offset(const Sums& sums, int32_t q_sum) const {
        return add(sums, set_sums(-offset * q_sum));
    }
    LLMD_INLINE_MEMBER int32_t q_sum(int64_t unit, int64_t units) const {
        return x.running[(unit + units) * x.rows] - x.running[unit * x.rows];
    }

    LLMD_INLINE_MEMBER const uint8_t* add_one_level(const uint8_t* at, int64_t a, int64_t unit) {
        const uint8_t* coarse = at;
        const int64_t chunks = layout.chunks(a);
        const uint8_t* fine_scales = at + layout.coarse_bytes();
        const uint8_t* fine_minimums = fine_scales + layout.fine_scale_bytes(a);
        const uint8_t* outliers = fine_scales + layout.fine_bytes(a);
        at = outliers + layout.outlier_bytes();
        const int32_t of_inputs = q_sum(unit, 2 * chunks);
        group.start();
        for (int64_t c = 0; c < chunks; ++c, at += 64 * C::kBits) {
            decoding.load_steps_of(c, fine_scales, fine_minimums);
            group.add_chunk(load_chunk<C::kBits, kRowAhead>(at), decoding, x, unit + 2 * c);
        }
        Sums sums = less_offset(add(group.half(0), group.half(1)), of_inputs);
        if constexpr (C::kHasOutliers) sums = add(sums, Outliers(outliers).sums(x, unit, 0));
        totals.add_group(sums, coarse, layout.format.bf16_scales, x.scales[a * x.rows], of_inputs);
        return at;
    }

    LLMD_INLINE_MEMBER const uint8_t* add_two_levels(const uint8_t* at, int64_t a, int64_t unit) {
        const uint8_t* coarse = at;
        const uint8_t* scales = at + layout.coarse_bytes();
        const uint8_t* minimums = scales + layout.groups(a) * kPanelRows;
        const int64_t chunks = layout.chunks(a);
        const int64_t in_group = layout.format.group_size / kChunkInputs;  // 0: half a chunk
        at = scales + layout.fine_bytes(a);
        totals.clear_inner();
        const auto finish = [&](const Sums& sums, int64_t first, int64_t units) LLMD_LAMBDA {
            const int32_t of_inputs = q_sum(first, units);
            totals.add_fine(less_offset(sums, of_inputs), scales, minimums, of_inputs);
            scales += kPanelRows;
            minimums += kPanelRows;
        };
        for (int64_t c = 0; c < chunks;) {
            const int64_t first = c;
            const int64_t end = in_group == 0 ? c + 1 : c + in_group < chunks ? c + in_group : chunks;
            group.start();
            for (; c < end; ++c, at += 64 * C::kBits) {
                group.add_chunk(load_chunk<C::kBits, kRowAhead>(at), decoding, x, unit + 2 * c);
            }
            if (in_group == 0) {
                finish(group.half(0), unit + 2 * first, 1);
                finish(group.half(1), unit + 2 * first + 1, 1);
            } else {
                finish(add(group.half(0), group.half(1)), unit + 2 * first, 2 * (end - first));
            }
        }
        totals.add_inner(coarse, layout.format.bf16_scales, x.scales[a * x.rows]);
        return at;
    }
};

// One row against one panel.
template <class C, class S>
void integer_row(const uint8_t* at, const PanelLayout& layout, const InputTile& x, const TileOut& to) {
    RowPanel<C, S> panel{layout, x, Decoding<C>(layout.format), C::offset(layout.format), {}, {}};
    panel.totals.clear();
    const int64_t units = layout.format.activation_group() / kUnitInputs;
    for (int64_t a = 0; a < layout.activation_groups(); ++a) {
        if constexpr (S::kTwoLevels) {
            at = panel.add_two_levels(at, a, a * units);
        } else {
            at = panel.add_one_level(at, a, a * units);
        }
    }
    float totals[kPanelRows];
    unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA { store(totals + v * Vec::kLanes, panel.totals.total[v]); });
    finish_panel(to, 0, 0, totals);
}

// Up to kStepRows rows against one panel of 4-bit codes with steps, which multiply the sums of 32 codes.
template <int kRows>
void step_rows(const uint8_t* at, const PanelLayout& layout, const InputTile& x, const TileOut& to) {
    constexpr int kBits = 4;
    const int64_t units = layout.format.activation_group() / kUnitInputs;
    const auto q_sum = [&](auto m, int64_t unit, int64_t count) LLMD_LAMBDA {
        return x.running[(unit + count) * x.rows + m] - x.running[unit * x.rows + m];
    };
    Vec totals[kRows * kPanelVecs];
    unroll<kRows * kPanelVecs>([&](auto i) LLMD_LAMBDA { totals[i] = set1(0.0F); });
    for (int64_t a = 0; a < layout.activation_groups(); ++a) {
        const uint8_t* coarse = at;
        const uint8_t* steps = at + layout.coarse_bytes();
        const uint8_t* minimums = steps + layout.fine_scale_bytes(a);
        const int64_t chunks = layout.chunks(a);
        at = steps + layout.fine_bytes(a);
        StepSums sums[kRows];
        unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m].start(); });
        for (int64_t c = 0; c < chunks; ++c, at += 64 * kBits) {
            const Chunk<kBits> chunk = load_chunk<kBits, kRowAhead>(at);
            const int64_t unit = a * units + 2 * c;
            const int8_t* inputs = x.unit(unit);
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                sums[m].add(chunk.planes, steps, minimums, inputs + m * kLineInputs, q_sum(m, unit, 2));
            });
            steps += kPanelRows / 2;
            minimums += kPanelRows;
        }
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const int32_t offset = kBiasOfSigned * q_sum(m, a * units, 2 * chunks);
            const Sums sum = add(sums[m].sums(), set_sums(-offset));
            const Vec x_scale = set1(x.scales[a * x.rows + m]);
            unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
                Vec& total = totals[m * kPanelVecs + v];
                total = fma(to_float<v>(sum), load_coarse(coarse, v, false) * x_scale, total);
            });
        });
    }
    unroll<kRows>([&](auto m) LLMD_LAMBDA {
        float values[kPanelRows];
        unroll<kPanelVecs>([&](auto v)
                               LLMD_LAMBDA { store(values + v * Vec::kLanes, totals[m * kPanelVecs + v]); });
        finish_panel(to, m, 0, values);
    });
}

using RowKernel = void (*)(const uint8_t*, const PanelLayout&, const InputTile&, const TileOut&);

// What multiplies one row, and several by codes with steps. A unit may have its own.
template <class C, class S, Operand = C::kOperand>
struct OneRow {
    static constexpr RowKernel kernel = integer_row<C, S>;
};
template <int kRows, Operand = operand_of(8, false)>
struct StepRows {
    static constexpr RowKernel kernel = step_rows<kRows>;
};

// The kernel for a number of rows; null where they are too many, or the codes are no such.
template <int kRows = kStepRows>
LLMD_INLINE RowKernel step_kernel(const IntegerFormat& format, int64_t rows) {
    if (!format.short_steps() || rows > kRows) return nullptr;
    if constexpr (kRows > 1) {
        if (rows < kRows) return step_kernel<kRows - 1>(format, rows);
    }
    return StepRows<kRows>::kernel;
}

}  // namespace llmd::LLMD_ISA
