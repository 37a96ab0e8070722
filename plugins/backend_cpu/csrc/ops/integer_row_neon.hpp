// linear, integers, one row with NEON: the sums of a panel take four registers, which are enough
// independent chains, and little work is left at the end of a group.
//
//   sums      start at minus the offset of the codes times the sum of activations, instead of at zero
//   minimums  fine minimums times sums of activations, in integers: as exact as in floats
//   inputs    those of one row are contiguous, and so are the running sums

#pragma once

#include "kernels.hpp"
#include "simd/functions.hpp"
// Ops in dependency order.
#include "ops/integer_row.hpp"

namespace llmd::LLMD_ISA {

// Loads a slab of which one half is needed: the compiler drops the other loads. The first half also
// prefetches.
template <int kBits, int kHalf>
LLMD_INLINE Slab<kBits> load_half(const uint8_t* p) {
    Slab<kBits> slab;
    unroll<kBits>([&](auto i) LLMD_LAMBDA {
        slab.planes[i] = kBits == 8 ? load_at_once(p + 64 * i) : load_bytes(p + 64 * i);
        if constexpr (kHalf == 0) __builtin_prefetch(p + 64 * i + kRowAhead);
    });
    return slab;
}

// One row against one panel.
template <class C, class S>
struct NeonRow {
    static_assert(kPanelVecs == 4);

    const PanelLayout& layout;
    const InputTile& x;
    Decoding<C> decoding;
    int32_t offset;
    RowTotals<S> totals;
    // What comes next in each array.
    const uint8_t* at = nullptr;
    const int8_t* inputs = nullptr;
    const int32_t* running = nullptr;
    int32_t before = 0;  // the sum of all earlier activations

    LLMD_INLINE_MEMBER void multiply(const uint8_t* panel) {
        const int64_t most = layout.format.activation_group() / kSlabInputs;
        at = panel;
        inputs = x.values;
        running = x.running;
        totals.clear();
        int64_t left = pieces(layout.cols, kSlabInputs);
        int64_t a = 0;
        if constexpr (S::kTwoLevels) {
            for (; left > 0; left -= most, ++a) add_two_levels(a, left < most ? left : most);
        } else {
            if (most == 1) {
                for (; a < left; ++a) add_one_level(a, 1);
                return;
            }
            for (; left > 0; left -= most, ++a) add_one_level(a, left < most ? left : most);
        }
    }

  private:
    using Products = Accumulator<Operand::kSigned>;
    static constexpr int64_t kCoarseBytes = 2 * kPanelRows * (S::kMinimum ? 2 : 1);

    // The sum of the activations of the next segments.
    LLMD_INLINE_MEMBER int32_t q_sum(int64_t segments) {
        running += segments;
        const int32_t sum = *running - before;
        before = *running;
        return sum;
    }
    template <int kHalf>
    LLMD_INLINE_MEMBER void add_half(Products& sums) {
        constexpr int kQuads = kSlabQuads / 2;
        const Slab<C::kBits> slab = load_half<C::kBits, kHalf>(at);
        unroll<C::kTerms>([&](auto term) LLMD_LAMBDA {
            const int8_t* of_term = inputs + term * x.term_bytes;
            unroll<kQuads>([&](auto i) LLMD_LAMBDA {
                constexpr int kQuad = kHalf * kQuads + i;
                sums.add(record_of<C, kQuad>(slab, decoding), load_quad(of_term, kQuad));
            });
        });
        if constexpr (kHalf == 0) load_after(at, sums.total);
    }
    LLMD_INLINE_MEMBER void leave_slab() {
        at += 64 * C::kBits;
        inputs += kSlabInputs;
    }

    // Integer sums of the next slabs; `of_inputs` is the sum of their activations.
    LLMD_INLINE_MEMBER Sums sums_of(int64_t slabs, int32_t of_inputs, const uint8_t* fine_scales = nullptr,
                                    const uint8_t* fine_minimums = nullptr) {
        Products sums;
        sums.start(-offset * of_inputs);
        for (int64_t c = 0; c < slabs; ++c) {
            decoding.load_scales_of(c, fine_scales, fine_minimums);
            add_half<0>(sums);
            add_half<1>(sums);
            leave_slab();
        }
        return sums.sums();
    }

    LLMD_INLINE_MEMBER void add_one_level(int64_t a, int64_t slabs) {
        const uint8_t* coarse = at;
        const uint8_t* fine_scales = nullptr;
        const uint8_t* fine_minimums = nullptr;
        at += kCoarseBytes;
        if constexpr (C::kScaleSegments > 0) {
            fine_scales = at;
            fine_minimums = at + layout.fine_scale_bytes(a);
            at += layout.fine_bytes(a);
        }
        const uint8_t* outliers = at;
        if constexpr (C::kHasOutliers) at += layout.outlier_bytes();
        const int32_t of_inputs = q_sum(2 * slabs);
        Sums sums = sums_of(slabs, of_inputs, fine_scales, fine_minimums);
        if constexpr (C::kHasOutliers) {
            const int64_t segment = a * (layout.format.group_size / kSegmentInputs);
            sums = add(sums, Outliers(outliers).sums(x, segment, 0));
        }
        totals.add_group(sums, {coarse, layout.format.bf16_scales}, x.scales[a], of_inputs);
    }

    LLMD_INLINE_MEMBER void add_two_levels(int64_t a, int64_t slabs) {
        const uint8_t* coarse = at;
        FineSums fine(at + kCoarseBytes, layout.groups(a));
        at += kCoarseBytes + layout.fine_bytes(a);
        if (layout.format.group_size < kSlabInputs) {
            for (; slabs > 0; --slabs) {
                unroll<2>([&](auto half) LLMD_LAMBDA {
                    const int32_t of_inputs = q_sum(1);
                    Products sums;
                    sums.start(-offset * of_inputs);
                    add_half<half>(sums);
                    fine.add_group(sums.sums(), of_inputs);
                });
                leave_slab();
            }
        } else {
            for (; slabs > 0; --slabs) {
                const int32_t of_inputs = q_sum(2);
                fine.add_group(sums_of(1, of_inputs), of_inputs);
            }
        }
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            totals.inner[v] = fine.scaled[v];
            if constexpr (S::kMinimum) totals.inner_minimum[v] = to_float<v>(fine.minimum);
        });
        totals.add_inner({coarse, layout.format.bf16_scales}, x.scales[a]);
    }

    // Sums over the weight groups of an activation group, with their fine scales and minimums.
    struct FineSums {
        const uint8_t* scales;
        const uint8_t* minimums;
        Vec scaled[kPanelVecs];
        Sums minimum;

        LLMD_INLINE_MEMBER FineSums(const uint8_t* p, int64_t groups)
            : scales(p), minimums(p + groups * kPanelRows), minimum(set_sums(0)) {
            unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA { scaled[v] = set1(0.0F); });
        }
        LLMD_INLINE_MEMBER void add_group(const Sums& sums, int32_t q_sum) {
            const Sums scale = widen(load_words(scales));
            unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
                scaled[v] = fma(to_float<v>(sums), to_float<v>(scale), scaled[v]);
            });
            scales += kPanelRows;
            if constexpr (S::kMinimum) {
                static_assert(127 * C::kTerms * kMostGroupInputs <= INT16_MAX);
                minimum = add_products(minimum, load_words(minimums), static_cast<int16_t>(q_sum));
                minimums += kPanelRows;
            }
        }
    };
};

template <class C, class S>
void neon_row(const RowPanels& panels, const PanelLayout& layout, const InputTile& x) {
    static_assert(kRowPanels == 1);
    NeonRow<C, S> row{layout, x, Decoding<C>(layout.format), C::offset(layout.format), {}};
    row.multiply(panels.at[0]);
    finish_row(panels.to[0], 0, row.totals.total);
}
template <class C, class S>
struct OneRow<C, S, Operand::kSigned> {
    static constexpr RowKernel kernel = neon_row<C, S>;
};

// Rows against one panel of 4-bit codes with fine scales, like ScaledPanel.
template <int kRows>
struct NeonScaledRows {
    static_assert(kBiasOfSigned == 0);
    using C = Codes<4>;

    const PanelLayout& layout;
    const InputTile& x;
    Vec totals[kRows * kPanelVecs];

    LLMD_INLINE_MEMBER void multiply(const uint8_t* at) {
        const Decoding<C> decoding(layout.format);
        const int64_t most = layout.format.activation_group() / kSlabInputs;
        const int64_t all = pieces(layout.cols, kSlabInputs);
        const int32_t* running = x.running;
        const float* x_scales = x.scales;
        unroll<kRows * kPanelVecs>([&](auto i) LLMD_LAMBDA { totals[i] = set1(0.0F); });
        for (int64_t c = 0; c < all;) {
            const int64_t end = c + most < all ? c + most : all;
            const uint8_t* coarse = at;
            const uint8_t* scales = coarse + 2 * kPanelRows;
            const uint8_t* offsets = scales + (end - c) * (kPanelRows / 2);
            at = offsets + (end - c) * kPanelRows;
            ScaledSums sums[kRows];
            unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m].start(); });
            for (; c < end; ++c) {
                Accumulator<Operand::kSigned> products[kRows];
                unroll<kRows>([&](auto m) LLMD_LAMBDA { products[m].start(0); });
                unroll<2>([&](auto half) LLMD_LAMBDA {
                    constexpr int kQuads = kSlabQuads / 2;
                    const Slab<4> slab = load_half<4, half>(at);
                    unroll<kQuads>([&](auto i) LLMD_LAMBDA {
                        constexpr int kQuad = half * kQuads + i;
                        const Bytes record = record_of<C, kQuad>(slab, decoding);
                        unroll<kRows>([&](auto m) LLMD_LAMBDA {
                            products[m].add(record, load_quad(inputs(c) + m * kLineInputs, kQuad));
                        });
                    });
                    if constexpr (half == 0) load_after(at, products[0].total);
                });
                const Sums scale = widen(load_nibble_scales(scales));
                const Words offset = load_offsets(offsets);
                unroll<kRows>([&](auto m) LLMD_LAMBDA {
                    sums[m].add(products[m].total, scale, offset, running[2 * kRows + m] - running[m]);
                });
                at += 64 * C::kBits;
                scales += kPanelRows / 2;
                offsets += kPanelRows;
                running += 2 * kRows;
            }
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                const Vec x_scale = set1(*x_scales++);
                unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
                    Vec& total = totals[m * kPanelVecs + v];
                    total = fma(to_float<v>(sums[m].sums()), load_coarse(coarse, v, false) * x_scale, total);
                });
            });
        }
    }

  private:
    // The activations of a slab, in lines of kRows rows.
    LLMD_INLINE_MEMBER const int8_t* inputs(int64_t slab) const {
        if constexpr (kRows == 1) return x.values + slab * kSlabInputs;
        InputTile rows = x;
        rows.rows = kRows;
        return rows.segment(2 * slab);
    }
};

template <int kRows>
void neon_scaled_rows(const RowPanels& panels, const PanelLayout& layout, const InputTile& x) {
    static_assert(kRowPanels == 1);
    NeonScaledRows<kRows> rows{layout, x, {}};
    rows.multiply(panels.at[0]);
    unroll<kRows>([&](auto m) LLMD_LAMBDA { finish_row(panels.to[0], m, rows.totals + m * kPanelVecs); });
}
template <int kRows>
struct ScaledRows<kRows, Operand::kSigned> {
    static constexpr RowKernel kernel = neon_scaled_rows<kRows>;
};

}  // namespace llmd::LLMD_ISA
