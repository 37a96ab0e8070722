// linear, integers: out[r][o] = sum over activation groups of x_scale * (sum over weight groups of scale *
// sum_i int[o][i] * q[r][i] + minimum * sum_i q[r][i]) + bias[o]
//
//   weights  panels of 16 rows, ops/pack.hpp     activations  ops/quantize.hpp     out  f32
//   order    integer sums are exact; for the rest see ops/integer_scales.hpp: the same for any number of
//            rows
//   where    one row: ops/integer_row.hpp     more: ops/integer_tile.hpp
//   check    NMSE < 1e-12 against the same formula in float64, integer sums equal
//            (tests/plugins/backend_cpu/test_device.py)
//   speed    make bench; see bench/results

#pragma once

#include "ops/integer_row.hpp"
#include "ops/integer_tile.hpp"

namespace llmd::LLMD_ISA {

// Rows whose totals stay in cache while the blocks of a panel are multiplied.
constexpr int64_t kRowBlock = 128;

// An integer weight, and where its outputs go.
struct IntegerPanels {
    const LinearArgs& args;
    const LinearTarget& target;
    PanelLayout layout;

    IntegerPanels(const LinearArgs& args, const LinearTarget& target)
        : args(args), target(target), layout{target.weight.cols, target.weight.integer} {}

    const uint8_t* panel(int64_t p) const {
        return static_cast<const uint8_t*>(target.weight.data) + p * layout.panel_bytes();
    }
    InputTile inputs(int64_t row) const {
        const InputLayout of{layout.cols, layout.format.activation_group(), layout.format.input_terms()};
        return input_tile(args.converted, of, row, args.rows);
    }
    // Outputs beginning with a row and a panel.
    TileOut out(int64_t row, int64_t p) const {
        const int64_t first = p * kPanelRows;
        return {target.out + row * target.weight.rows + first,
                target.bias == nullptr ? nullptr : target.bias + first, target.weight.rows,
                target.weight.rows - first};
    }
};

// How many rows make the tile that begins at `row`: within one input tile, and divided evenly.
LLMD_INLINE int64_t tile_rows(int64_t row, int64_t last) {
    const int64_t end = (row / kInputRows + 1) * kInputRows;
    const int64_t left = (end < last ? end : last) - row;
    return pieces(left, pieces(left, kRowTile));
}

// The shape of a block of activation groups [first, last).
LLMD_INLINE BlockShape block_shape(const PanelLayout& layout, int64_t first, int64_t last, int32_t offset) {
    const int64_t group = layout.format.activation_group();
    int64_t slabs = 0;
    for (int64_t a = first; a < last; ++a) slabs += layout.slabs(a);
    return {first,
            first * group / kSegmentInputs,
            slabs * (kSlabInputs / kSegmentInputs),
            layout.format.sum_group() / kSegmentInputs,
            group / kSegmentInputs,
            offset};
}

// Rows [first, last), at most kRows, against panels [p, p + count). If `count` is less than kPanelTile,
// the last panel fills the tile. Calls multiply(of, panels, shape, first, last, totals) for each block.
template <class C, bool kPlain, int64_t kRows, class F>
void panel_rows(const IntegerPanels& of, int64_t p, int64_t count, int64_t first, int64_t last,
                F&& multiply) {
    constexpr int64_t kWidth = kPanelTile * kPanelRows;
    const PanelLayout& layout = of.layout;
    const int64_t group = layout.format.activation_group();
    PanelBlock panels[kPanelTile];
    alignas(64) float totals[kRows * kWidth];
    std::memset(totals, 0, sizeof(float) * static_cast<size_t>((last - first) * kWidth));
    const uint8_t* at[kPanelTile];
    for (int64_t i = 0; i < kPanelTile; ++i) at[i] = of.panel(p + (i < count ? i : count - 1));
    // Few rows: short blocks, so that decoding and multiplying overlap.
    const int64_t block_groups = (last - first <= kInputRows ? kMostGroupInputs : kBlockInputs) / group;
    for (int64_t a = 0; a < layout.activation_groups(); a += block_groups) {
        const int64_t end =
            a + block_groups < layout.activation_groups() ? a + block_groups : layout.activation_groups();
        const BlockShape shape = block_shape(layout, a, end, C::offset(layout.format));
        for (int i = 0; i < kPanelTile; ++i) {
            at[i] = decode_block<C, kPlain>(at[i], layout, a, end, panels[i]);
        }
        multiply(of, panels, shape, first, last, totals);
    }
    const TileOut out = of.out(first, p);
    for (int64_t r = 0; r < last - first; ++r) {
        for (int64_t i = 0; i < count; ++i) {
            finish_panel(out, r, i, totals + r * kWidth + i * kPanelRows);
        }
    }
}

template <class C>
LLMD_INLINE void tile_block(const IntegerPanels& of, const PanelBlock* panels, const BlockShape& shape,
                            int64_t first, int64_t last, float* totals) {
    with_scales<C>(of.layout.format, [&](auto scales) LLMD_LAMBDA {
        for (int64_t r = first; r < last;) {
            const int64_t rows = tile_rows(r, last);
            tile_kernel<decltype(scales), C::kOperand, C::kHasOutliers>(rows)(panels, shape, of.inputs(r),
                                                                              totals);
            totals += rows * kPanelTile * kPanelRows;
            r += rows;
        }
    });
}

// Panels [first, last) with few rows, in as many streams as a kernel has panels; each stream is a part of
// the range, far from the others.
LLMD_INLINE void stream_panels(const IntegerPanels& of, RowKernel kernel, int64_t first, int64_t last) {
    const int64_t part = pieces(last - first, kRowPanels);
    const InputTile x = of.inputs(0);
    for (int64_t i = first; i < first + part; ++i) {
        RowPanels panels;
        for (int64_t s = 0; s < kRowPanels; ++s) {
            const int64_t p = i + s * part < last ? i + s * part : last - 1;  // or the last one again
            panels.at[s] = of.panel(p);
            panels.to[s] = of.out(0, p);
        }
        kernel(panels, of.layout, x);
    }
}

// Panels [first, last) of one weight.
void integer_panels(const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last) {
    const IntegerPanels of(args, target);
    if (const RowKernel kernel = scaled_kernel(of.layout.format, args.rows)) {
        return stream_panels(of, kernel, first, last);
    }
    with_codes(target.weight.integer, [&](auto codes) LLMD_LAMBDA {
        using C = decltype(codes);
        if (args.rows == 1) {
            with_scales<C>(of.layout.format, [&](auto scales) LLMD_LAMBDA {
                stream_panels(of, OneRow<C, decltype(scales)>::kernel, first, last);
            });
            return;
        }
        for (int64_t p = first; p < last; p += kPanelTile) {
            const int64_t count = p + kPanelTile < last ? kPanelTile : last - p;
            for (int64_t r = 0; r < args.rows; r += kRowBlock) {
                const int64_t end = r + kRowBlock < args.rows ? r + kRowBlock : args.rows;
                panel_rows<C, kPlainRecords, kRowBlock>(of, p, count, r, end, tile_block<C>);
            }
        }
    });
}

}  // namespace llmd::LLMD_ISA
