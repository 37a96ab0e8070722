// linear, integers, several rows: which blocks of which panels are multiplied by which rows.

#pragma once

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

// How many rows make the tile that begins at `row`: at most kMost, within one input tile, and divided evenly.
template <int kMost = kRowTile>
LLMD_INLINE int64_t tile_rows(int64_t row, int64_t last) {
    const int64_t end = (row / kInputRows + 1) * kInputRows;
    const int64_t left = (end < last ? end : last) - row;
    return pieces(left, pieces(left, kMost));
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

// Calls f(first row, rows, totals) for the tiles of rows [first, last).
template <int kMost = kRowTile, class F>
LLMD_INLINE void each_tile(int64_t first, int64_t last, float* totals, F&& f) {
    while (first < last) {
        const int64_t rows = tile_rows<kMost>(first, last);
        f(first, rows, totals);
        totals += rows * kPanelTile * kPanelRows;
        first += rows;
    }
}

// How blocks of panels are decoded and multiplied by several rows. A unit may specialise it.
template <class C, class S>
struct Blocks {
    using Block = PanelBlock;

    static const uint8_t* decode(const uint8_t* at, const PanelLayout& layout, int64_t first, int64_t last,
                                 Block& to) {
        return decode_block<C, kPlainRecords>(at, layout, first, last, to);
    }
    // Adds the products of rows [first, last) to their totals.
    static void multiply(const IntegerPanels& of, const Block* panels, const BlockShape& shape, int64_t first,
                         int64_t last, float* totals) {
        each_tile(first, last, totals, [&](int64_t r, int64_t rows, float* to) LLMD_LAMBDA {
            tile_kernel<S, C::kOperand, C::kHasOutliers>(rows)(panels, shape, of.inputs(r), to);
        });
    }
};

// Rows [first, last), at most kRowBlock, against panels [p, p + count). If `count` is less than kPanelTile,
// the last panel fills the tile.
template <class C, class S>
void panel_rows(const IntegerPanels& of, int64_t p, int64_t count, int64_t first, int64_t last) {
    constexpr int64_t kWidth = kPanelTile * kPanelRows;
    const PanelLayout& layout = of.layout;
    const int64_t group = layout.format.activation_group();
    typename Blocks<C, S>::Block panels[kPanelTile];
    alignas(64) float totals[kRowBlock * kWidth];
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
            at[i] = Blocks<C, S>::decode(at[i], layout, a, end, panels[i]);
        }
        Blocks<C, S>::multiply(of, panels, shape, first, last, totals);
    }
    const TileOut out = of.out(first, p);
    for (int64_t r = 0; r < last - first; ++r) {
        for (int64_t i = 0; i < count; ++i) {
            finish_panel(out, r, i, totals + r * kWidth + i * kPanelRows);
        }
    }
}

}  // namespace llmd::LLMD_ISA
