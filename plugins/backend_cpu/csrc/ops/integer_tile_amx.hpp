// linear, integers, several rows, in AMX tiles: 16 rows by 16 outputs, 64 inputs at a time.
//
//   tile   two panels by one or two tiles of inputs: four registers of sums, two of activations, two of
//          records; or one panel by one tile, with each group of inputs in a separate register. The latter
//          is for few rows, and for short groups, where scales are most of the work
//   where  weights with one scale for each 32 inputs or a multiple, without minimums
//   order  as in ops/integer_scales.hpp

#pragma once

#include "ops/integer_tile.hpp"
#include "ops/outliers_amx.hpp"
#include "ops/tiles_amx.hpp"

namespace llmd::LLMD_ISA {

constexpr int kSumTiles = 4;

LLMD_INLINE bool amx_suits(const IntegerFormat& format) {
    const bool one_level = format.in_int8 || (!format.two_levels() && !format.has_minimum);
    return one_level && format.sum_group() % kSlabInputs == 0;
}

// Registers 0 and 1 hold the sums of the first tile of rows for two panels, 2 and 3 those of the second; 4
// and 5 hold the activations of the first and second tile; 6 and 7 the records of the panels.
LLMD_INLINE TileShapes integer_tiles(int64_t first_rows, int64_t second_rows, int64_t inputs) {
    TileShapes shapes;
    for (const int sums : {0, 1}) shapes.set(sums, first_rows, kLineInputs);
    for (const int sums : {2, 3}) shapes.set(sums, second_rows, kLineInputs);
    shapes.set(4, first_rows, inputs);
    shapes.set(5, second_rows, inputs);
    for (const int records : {6, 7}) shapes.set(records, inputs / 4, kLineInputs);
    return shapes;
}

// Adds the products of the rows in registers 4 and 5 with the records in 6 and 7.
template <int kTiles>
LLMD_INLINE void multiply_line(const int8_t* inputs, const int8_t* more) {
    constexpr int64_t kStride = kLineInputs;
    asm volatile(
        "tileloadd (%0, %1, 1), %%tmm4\n\t"
        "tdpbssd %%tmm6, %%tmm4, %%tmm0\n\t"
        "tdpbssd %%tmm7, %%tmm4, %%tmm1"
        :
        : "r"(inputs), "r"(kStride)
        : "memory");
    if constexpr (kTiles == 2) {
        asm volatile(
            "tileloadd (%0, %1, 1), %%tmm5\n\t"
            "tdpbssd %%tmm6, %%tmm5, %%tmm2\n\t"
            "tdpbssd %%tmm7, %%tmm5, %%tmm3"
            :
            : "r"(more), "r"(kStride)
            : "memory");
    }
}
LLMD_INLINE void load_records(const uint8_t* first, const uint8_t* second) {
    asm volatile("tileloadd (%0, %2, 1), %%tmm6\n\ttileloadd (%1, %2, 1), %%tmm7"
                 :
                 : "r"(first), "r"(second), "r"(kLineInputs)
                 : "memory");
}
template <int kTiles, bool kTwoTerms>
LLMD_INLINE void sum_lines(const uint8_t* first, const uint8_t* second, const InputTile (&x)[kTiles],
                           int64_t line, int64_t lines) {
    const int8_t* inputs = x[0].values + line * x[0].rows * kLineInputs;
    const int8_t* more = x[kTiles - 1].values + line * x[kTiles - 1].rows * kLineInputs;
    for (; lines > 0; --lines) {
        load_records(first, second);
        multiply_line<kTiles>(inputs, more);
        if constexpr (kTwoTerms)
            multiply_line<kTiles>(inputs + x[0].term_bytes, more + x[kTiles - 1].term_bytes);
        first += kTileBytes;
        second += kTileBytes;
        inputs += x[0].rows * kLineInputs;
        more += x[kTiles - 1].rows * kLineInputs;
    }
}
// Products of up to four pieces of `inputs` inputs, each in a separate register, so that none waits for
// another: [piece][16][16], beginning with segment `segment` of the activations.
LLMD_INLINE void multiply_pieces(const uint8_t* records, const InputTile& x, int64_t segment, int64_t inputs,
                                 int64_t count, int32_t* products) {
    constexpr int64_t kStride = kLineInputs;
    const auto multiply = [&](auto i) LLMD_LAMBDA {
        if (i >= count) return;
        // Operands need names: clang rejects operands that name captured variables.
        const int8_t* of_piece = x.segment(segment + i * inputs / kSegmentInputs);
        const uint8_t* record = records + i * inputs * kPanelRows;
        int32_t* sums = products;
        asm volatile(
            "tilezero %%tmm%c3\n\t"
            "tileloadd (%0, %2, 1), %%tmm4\n\t"
            "tileloadd (%1, %2, 1), %%tmm6\n\t"
            "tdpbssd %%tmm6, %%tmm4, %%tmm%c3"
            :
            : "r"(of_piece), "r"(record), "r"(kStride), "i"(static_cast<int>(i))
            : "memory");
        asm volatile("tilestored %%tmm%c2, %c3(%0, %1, 1)"
                     :
                     : "r"(sums), "r"(kStride), "i"(static_cast<int>(i)), "i"(i * kTileBytes)
                     : "memory");
    };
    unroll<kSumTiles>(multiply);
}

// Calls f(scales of 16 outputs, scales of the rows, products [rows][16]) for each group in a block of one
// panel.
template <class F>
LLMD_INLINE void each_piece(const PanelBlock& panel, const BlockShape& shape, const InputTile& x, F&& f) {
    alignas(64) int32_t products[kSumTiles * kTileRows * kPanelRows];
    const int64_t segments = shape.group_segments;
    const int64_t all = pieces(shape.segments, segments);
    for (int64_t first = 0; first < all; first += kSumTiles) {
        const int64_t count = all - first < kSumTiles ? all - first : kSumTiles;
        multiply_pieces(panel.records + first * segments * kSegmentInputs * kPanelRows, x,
                        shape.first_segment + first * segments, segments * kSegmentInputs, count, products);
        for (int64_t i = 0; i < count; ++i) {
            f(load(panel.scales + (first + i) * kPanelRows),
              x.scales + (shape.first_activation + first + i) * x.rows,
              products + i * kTileRows * kPanelRows);
        }
    }
}

// Up to 16 rows against a block of one panel. Totals are 16 floats for each row, `stride` apart.
LLMD_INLINE void amx_panel_block(const PanelBlock& panel, const BlockShape& shape, const InputTile& x,
                                 float* totals, int64_t stride) {
    each_piece(panel, shape, x, [&](Vec scale, const float* x_scales, const int32_t* from) LLMD_LAMBDA {
        for (int64_t m = 0; m < x.rows; ++m, from += kPanelRows) {
            float* total = totals + m * stride;
            store(total, fma(to_float<0>(load_sums(from)), scale * set1(x_scales[m]), load(total)));
        }
    });
}

// The same for 16 rows: totals stay in registers.
LLMD_INLINE void amx_whole_tile(const PanelBlock& panel, const BlockShape& shape, const InputTile& x,
                                float* totals, int64_t stride) {
    Vec total[kTileRows];
    unroll<kTileRows>([&](auto m) LLMD_LAMBDA { total[m] = load(totals + m * stride); });
    each_piece(panel, shape, x, [&](Vec scale, const float* x_scales, const int32_t* from) LLMD_LAMBDA {
        unroll<kTileRows>([&](auto m) LLMD_LAMBDA {
            const Sums sums = load_sums(from + m * kPanelRows);
            total[m] = fma(to_float<0>(sums), scale * set1(x_scales[m]), total[m]);
        });
    });
    unroll<kTileRows>([&](auto m) LLMD_LAMBDA { store(totals + m * stride, total[m]); });
}

// Rows of one or two tiles against a block of two panels. Totals are [rows][kPanelTile][16].
template <int kTiles, bool kHasOutliers>
LLMD_INLINE void amx_tile(const PanelBlock* panels, const BlockShape& shape, const InputTile (&x)[kTiles],
                          const int64_t (&rows)[kTiles], float* totals) {
    static_assert(kPanelTile == 2 && kPanelVecs == 1);
    alignas(64) int32_t sums[kTiles * kPanelTile * kTileRows * kPanelRows];
    const int64_t group_lines = shape.group_segments / (kLineInputs / kSegmentInputs);
    const int64_t all_lines = pieces(shape.segments, kLineInputs / kSegmentInputs);
    const int64_t first_line = shape.first_segment / (kLineInputs / kSegmentInputs);
    const int64_t groups = pieces(all_lines, group_lines);
    for (int64_t g = 0; g < groups; ++g) {
        const int64_t line = g * group_lines;
        const int64_t lines = line + group_lines < all_lines ? group_lines : all_lines - line;
        start_sums<kTiles>();
        sum_lines<kTiles, kHasOutliers>(panels[0].records + line * kTileBytes,
                                        panels[1].records + line * kTileBytes, x, first_line + line, lines);
        store_sums<kTiles>(sums);
        const Vec scale[2] = {load(panels[0].scales + g * kPanelRows),
                              load(panels[1].scales + g * kPanelRows)};
        const ByteOutliers outliers[2] = {
            ByteOutliers(kHasOutliers ? panels[0].outliers[g] : panels[0].records),
            ByteOutliers(kHasOutliers ? panels[1].outliers[g] : panels[1].records)};
        float* to = totals;
        for (int t = 0; t < kTiles; ++t) {
            const float* x_scales = x[t].scales + (shape.first_activation + g) * x[t].rows;
            const int32_t* from = sums + t * kPanelTile * kTileRows * kPanelRows;
            for (int64_t m = 0; m < rows[t]; ++m, to += kPanelTile * kPanelRows) {
                const Vec x_scale = set1(x_scales[m]);
                unroll<kPanelTile>([&](auto p) LLMD_LAMBDA {
                    Sums of_tile = load_sums(from + (p * kTileRows + m) * kPanelRows);
                    if constexpr (kHasOutliers) {
                        of_tile = add(of_tile, outliers[p].sums(
                                                   x[t], shape.first_segment + g * shape.group_segments, m));
                    }
                    float* total = to + p * kPanelRows;
                    store(total, fma(to_float<0>(of_tile), scale[p] * x_scale, load(total)));
                });
            }
        }
    }
}

}  // namespace llmd::LLMD_ISA
