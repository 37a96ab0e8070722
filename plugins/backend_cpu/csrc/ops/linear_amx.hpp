// linear with AMX tiles if they suit the weights, else as ops/linear.hpp; the same bits.

#pragma once

#include "ops/integer_panel_amx.hpp"
#include "ops/linear.hpp"
#include "ops/linear_bf16_amx.hpp"

namespace llmd::LLMD_ISA {

// Activations of this size stay in the L2 cache while panels are read.
constexpr int64_t kCachedInputBytes = int64_t{1} << 20;

// Configures tiles for a number of rows, only if it changes.
class TileRows {
  public:
    explicit TileRows(int64_t inputs) : inputs_(inputs) {}
    LLMD_INLINE_MEMBER void set(int64_t first, int64_t second) {
        if (first == first_ && second == second_) return;
        set_tiles(integer_tiles(first, second, inputs_));
        first_ = first;
        second_ = second;
    }

  private:
    int64_t inputs_;
    int64_t first_ = 0;
    int64_t second_ = 0;
};

// Rows [first, last) against a block of two panels, two tiles of rows at a time.
template <bool kHasOutliers>
LLMD_INLINE void amx_long_groups(const IntegerPanels& of, const PanelBlock* panels, const BlockShape& shape,
                                 int64_t first, int64_t last, float* totals) {
    TileRows tiles(kLineInputs);
    for (int64_t r = first; r < last;) {
        const int64_t rows[2] = {last - r < kTileRows ? last - r : kTileRows,
                                 last - r - kTileRows < kTileRows ? last - r - kTileRows : kTileRows};
        tiles.set(rows[0], rows[1]);
        float* to = totals + (r - first) * kPanelTile * kPanelRows;
        if (rows[1] > 0) {
            amx_tile<2, kHasOutliers>(panels, shape, {of.inputs(r), of.inputs(r + kTileRows)},
                                      {rows[0], rows[1]}, to);
            r += rows[0] + rows[1];
        } else {
            amx_tile<1, kHasOutliers>(panels, shape, {of.inputs(r)}, {rows[0]}, to);
            r += rows[0];
        }
    }
}

// The same, one tile of rows and one panel at a time.
LLMD_INLINE void amx_short_groups(const IntegerPanels& of, const PanelBlock* panels, const BlockShape& shape,
                                  int64_t first, int64_t last, float* totals) {
    TileRows tiles(shape.group_segments * kSegmentInputs);
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

template <bool kHasOutliers>
LLMD_INLINE void amx_block(const IntegerPanels& of, const PanelBlock* panels, const BlockShape& shape,
                           int64_t first, int64_t last, float* totals) {
    if (shape.group_segments * kSegmentInputs >= kLineInputs)
        return amx_long_groups<kHasOutliers>(of, panels, shape, first, last, totals);
    amx_short_groups(of, panels, shape, first, last, totals);
}

// Up to 16 rows against a panel whose groups are shorter than a line.
template <class C>
void amx_short_panel(const IntegerPanels& of, int64_t p) {
    const PanelLayout& layout = of.layout;
    const InputTile x = of.inputs(0);
    alignas(64) float totals[kTileRows * kPanelRows] = {};
    PanelBlock panel;
    const uint8_t* at = of.panel(p);
    const int64_t block_groups = kSumTiles * kLineInputs / layout.format.activation_group();
    for (int64_t a = 0; a < layout.activation_groups(); a += block_groups) {
        const int64_t end =
            a + block_groups < layout.activation_groups() ? a + block_groups : layout.activation_groups();
        at = decode_block<C, true>(at, layout, a, end, panel);
        amx_panel_block(panel, block_shape(layout, a, end, 0), x, totals, kPanelRows);
    }
    const TileOut out = of.out(0, p);
    for (int64_t m = 0; m < x.rows; ++m) finish_panel(out, m, 0, totals + m * kPanelRows);
}

// Up to 16 rows against panels [first, last).
template <class C>
void amx_few_rows(const IntegerPanels& of, int64_t first, int64_t last) {
    const int64_t group = of.layout.format.sum_group();
    const bool lines = group >= kLineInputs;
    set_tiles(integer_tiles(of.args.rows, of.args.rows, lines ? kLineInputs : group));
    if (lines) return stream_panels(of, amx_row_kernel<C>, first, last);
    for (int64_t p = first; p < last; ++p) amx_short_panel<C>(of, p);
}

// Rows [first, last), at most kAmxRowBlock, against panels [p, p + count), at most kAmxPanels. All panels
// are multiplied by as many inputs of all rows as fit in the cache before the next inputs follow.
template <class C>
void amx_rows(const IntegerPanels& of, int64_t p, int64_t count, int64_t first, int64_t last) {
    constexpr int64_t kWidth = kPanelTile * kPanelRows;
    const PanelLayout& layout = of.layout;
    const int64_t group = layout.format.activation_group();
    const int64_t rows = last - first;
    const int64_t block_groups = kBlockInputs / group;
    const int64_t cached =
        kCachedInputBytes / (rows * layout.format.input_terms()) / kBlockInputs * block_groups;
    const int64_t together = cached > block_groups ? cached : block_groups;
    float* const totals = amx_totals();
    std::memset(totals, 0, sizeof(float) * static_cast<size_t>(pieces(count, kPanelTile) * rows * kWidth));
    const uint8_t* at[kAmxPanels];
    for (int64_t i = 0; i < kAmxPanels; ++i) at[i] = of.panel(p + (i < count ? i : count - 1));
    PanelBlock panels[kPanelTile];
    for (int64_t from = 0; from < layout.activation_groups(); from += together) {
        const int64_t to =
            from + together < layout.activation_groups() ? from + together : layout.activation_groups();
        for (int64_t i = 0; i < count; i += kPanelTile) {
            for (int64_t a = from; a < to; a += block_groups) {
                const int64_t end = a + block_groups < to ? a + block_groups : to;
                for (int64_t k = 0; k < kPanelTile; ++k) {
                    at[i + k] = decode_block<C, true>(at[i + k], layout, a, end, panels[k]);
                }
                amx_block<C::kHasOutliers>(of, panels, block_shape(layout, a, end, 0), first, last,
                                           totals + i * rows * kPanelRows);
            }
        }
    }
    // Rows are the outer loop: each row of a panel is in another page.
    const TileOut out = of.out(first, p);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < count; ++i) {
            const float* of_tile = totals + (i / kPanelTile * rows + r) * kWidth;
            finish_panel(out, r, i, of_tile + i % kPanelTile * kPanelRows);
        }
    }
}

void amx_panels(const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last) {
    const IntegerPanels of(args, target);
    const IntegerFormat& format = of.layout.format;
    if (args.rows == 1 || !amx_suits(format) || scaled_kernel(format, args.rows) != nullptr) {
        return integer_panels(args, target, first, last);
    }
    with_codes(target.weight.integer, [&](auto codes) LLMD_LAMBDA {
        using C = decltype(codes);
        if (args.rows <= kTileRows) return amx_few_rows<C>(of, first, last);
        each_amx_block(args.rows, first, last, [&](Run panels, Run rows) LLMD_LAMBDA {
            amx_rows<C>(of, panels.first, panels.last - panels.first, rows.first, rows.last);
        });
    });
    release_tiles();
}

void convert_amx(const ConvertArgs& args, Worker& worker) {
    if (args.form.kind == InputKind::kBf16Terms) return split(args, worker);
    quantize(args, worker);
}

void convert_batch_amx(const ConvertBatchArgs& batch, Worker& worker) {
    if (batch.count > 0 && batch.parts[0].form.kind == InputKind::kBf16Terms) {
        return split_batch(batch, worker);
    }
    quantize_batch(batch, worker);
}

// Tiles of panels that a thread takes at a time.
LLMD_INLINE int64_t amx_tiles(const LinearArgs& args) {
    constexpr int64_t kBf16Tiles = 4;
    const Matrix& weight = args.targets[0].weight;
    if (args.rows > kTileRows) return kAmxPanels / kPanelTile;
    return weight.format == Format::kBF16 ? kBf16Tiles : stream_tiles(weight);
}

LLMD_INLINE void any_panels_amx(const LinearArgs& args, const LinearTarget& target, int64_t first,
                                int64_t last, float* numbers) {
    if (target.weight.format == Format::kBF16) return bf16_panels(args, target, first, last);
    linear_panels(args, target, first, last, numbers, amx_panels);
}

void linear_batch_amx(const LinearBatchArgs& batch, Worker& worker) {
    share_parts(batch, worker, amx_tiles, any_panels_amx);
}

void linear_amx(const LinearArgs& args, Worker& worker) {
    if (!skip_zeros(args, worker)) linear_batch_amx({&args, 1}, worker);
}

}  // namespace llmd::LLMD_ISA
