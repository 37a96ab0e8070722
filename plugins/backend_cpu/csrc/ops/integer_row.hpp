// linear, integers, one row: bound by memory, so codes go from the stream straight into products.
//
//   tile   one panel by one row; four chains of products hide the latency of one

#pragma once

#include "ops/codes.hpp"
#include "ops/integer_scales.hpp"
#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

// Integer sums of a weight group: two chains for each half of a chunk.
template <class C>
struct GroupSums {
    Accumulator<C::kOperand> chains[4];

    LLMD_INLINE_MEMBER void start() {
        unroll<4>([&](auto i) LLMD_LAMBDA { chains[i].start(0); });
    }
    LLMD_INLINE_MEMBER void add_chunk(const Chunk<C::kBits>& chunk, const Decoding<C>& decoding,
                                      const int8_t* inputs) {
        unroll<kChunkQuads>([&](auto q) LLMD_LAMBDA {
            chains[q / 4 * 2 + q % 2].add(record_of<C, q>(chunk, decoding), load_quad(inputs + 4 * q));
        });
        unroll<4>([&](auto i) LLMD_LAMBDA { chains[i].close(); });
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
        at = fine_scales + layout.fine_bytes(a);
        const int32_t of_inputs = q_sum(unit, 2 * chunks);
        const auto finish = [&](const Sums& sums) LLMD_LAMBDA {
            totals.add_group(less_offset(sums, of_inputs), coarse, layout.format.bf16_scales,
                             x.scales[a * x.rows], of_inputs);
        };
        if constexpr (C::kStepUnits == 2 && C::kShortSteps) {
            StepSums sums;
            sums.start();
            for (int64_t c = 0; c < chunks; ++c, at += 64 * C::kBits) {
                sums.add(load_chunk<C::kBits, kRowAhead>(at).planes, fine_scales + c * kPanelRows / 2,
                         fine_minimums + c * kPanelRows, x.unit(unit + 2 * c), q_sum(unit + 2 * c, 2));
            }
            finish(sums.sums());
        } else {
            group.start();
            for (int64_t c = 0; c < chunks; ++c, at += 64 * C::kBits) {
                decoding.load_steps_of(c, fine_scales, fine_minimums);
                group.add_chunk(load_chunk<C::kBits, kRowAhead>(at), decoding, x.unit(unit + 2 * c));
            }
            finish(add(group.half(0), group.half(1)));
        }
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
                group.add_chunk(load_chunk<C::kBits, kRowAhead>(at), decoding, x.unit(unit + 2 * c));
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

}  // namespace llmd::LLMD_ISA
