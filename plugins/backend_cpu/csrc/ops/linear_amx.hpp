// linear with tiles of AMX where they suit the weights, else as ops/linear.hpp; the same bits.

#pragma once

#include "ops/integer_tile_amx.hpp"
#include "ops/linear.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kAmxRowBlock = 512;

// The tiles of some rows, set anew where they change.
class TileRows {
  public:
    explicit TileRows(int64_t inputs) : inputs_(inputs) {}
    LLMD_INLINE_MEMBER void set(int64_t first, int64_t second) {
        if (first == first_ && second == second_) return;
        set_tiles({first, second, inputs_});
        first_ = first;
        second_ = second;
    }

  private:
    int64_t inputs_;
    int64_t first_ = 0;
    int64_t second_ = 0;
};

// Rows [first, last) of a block of two panels, two tiles of rows at a time.
LLMD_INLINE void amx_long_groups(const IntegerPanels& of, const PanelBlock* panels, const BlockShape& shape,
                                 int64_t first, int64_t last, float* totals) {
    TileRows tiles(kLineInputs);
    for (int64_t r = first; r < last;) {
        const int64_t rows[2] = {last - r < kTileRows ? last - r : kTileRows,
                                 last - r - kTileRows < kTileRows ? last - r - kTileRows : kTileRows};
        tiles.set(rows[0], rows[1]);
        float* to = totals + (r - first) * kPanelTile * kPanelRows;
        if (rows[1] > 0) {
            amx_tile<2>(panels, shape, {of.inputs(r), of.inputs(r + kTileRows)}, {rows[0], rows[1]}, to);
            r += rows[0] + rows[1];
        } else {
            amx_tile<1>(panels, shape, {of.inputs(r)}, {rows[0]}, to);
            r += rows[0];
        }
    }
}

// The same, a tile of rows and a panel at a time.
LLMD_INLINE void amx_short_groups(const IntegerPanels& of, const PanelBlock* panels, const BlockShape& shape,
                                  int64_t first, int64_t last, float* totals) {
    TileRows tiles(piece_units(shape.group_units) * kUnitInputs);
    for (int64_t r = first; r < last; r += kTileRows) {
        const InputTile x = of.inputs(r);
        tiles.set(x.rows, x.rows);
        for (int64_t p = 0; p < kPanelTile; ++p) {
            float* to = totals + ((r - first) * kPanelTile + p) * kPanelRows;
            constexpr int64_t kStride = kPanelTile * kPanelRows;
            if (x.rows == kTileRows) {
                amx_whole_tile(panels[p], shape, x, to, kStride);
            } else {
                amx_panel_block(panels[p], shape, x, to, kStride);
            }
        }
    }
}

LLMD_INLINE void amx_block(const IntegerPanels& of, const PanelBlock* panels, const BlockShape& shape,
                           int64_t first, int64_t last, float* totals) {
    if (shape.group_units * kUnitInputs >= kLineInputs)
        return amx_long_groups(of, panels, shape, first, last, totals);
    amx_short_groups(of, panels, shape, first, last, totals);
}

// Up to 16 rows against a panel: it is read as one stream, and decoded while products are still made.
template <class C>
void amx_panel(const IntegerPanels& of, int64_t p) {
    const PanelLayout& layout = of.layout;
    const InputTile x = of.inputs(0);
    PanelBlock panel;
    alignas(64) float totals[kTileRows * kPanelRows] = {};
    const uint8_t* at = of.panel(p);
    const int64_t step = kSumTiles * kLineInputs / layout.format.activation_group();
    for (int64_t a = 0; a < layout.activation_groups(); a += step) {
        const int64_t end = a + step < layout.activation_groups() ? a + step : layout.activation_groups();
        at = decode_block<C, true>(at, layout, a, end, panel);
        amx_panel_block(panel, block_shape(layout, a, end, 0), x, totals, kPanelRows);
    }
    const TileOut out = of.out(0, p);
    for (int64_t m = 0; m < x.rows; ++m) finish_panel(out, m, 0, totals + m * kPanelRows);
}

void amx_panels(const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last) {
    const IntegerPanels of(args, target);
    const IntegerFormat& format = of.layout.format;
    if (args.rows == 1 || !amx_suits(format) || step_kernel(format, args.rows) != nullptr) {
        return integer_panels(args, target, first, last);
    }
    with_codes(target.weight.integer, [&](auto codes) LLMD_LAMBDA {
        using C = decltype(codes);
        if (args.rows <= kTileRows) {
            const int64_t group_units = format.sum_group() / kUnitInputs;
            set_tiles({args.rows, args.rows, piece_units(group_units) * kUnitInputs});
            for (int64_t p = first; p < last; ++p) amx_panel<C>(of, p);
            return;
        }
        for (int64_t p = first; p < last; p += kPanelTile) {
            const int64_t count = p + kPanelTile < last ? kPanelTile : last - p;
            for (int64_t r = 0; r < args.rows; r += kAmxRowBlock) {
                const int64_t end = r + kAmxRowBlock < args.rows ? r + kAmxRowBlock : args.rows;
                panel_rows<C, true, kAmxRowBlock>(of, p, count, r, end, amx_block);
            }
        }
    });
    release_tiles();
}

void linear_amx(const LinearArgs& args, Worker& worker) { share_panels(args, worker, amx_panels); }

}  // namespace llmd::LLMD_ISA
