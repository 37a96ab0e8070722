// linear, int8: out[r][o] = sum over groups g of float(sum_k qw[o][k] * qx[r][k]) * (scale_w[o][g] *
// scale_x[r][g])
//
//   weights  panels of 16 rows, ops/q8_panels.hpp     activations  ops/quantize.hpp     out  f32
//   order    integer sums are exact; groups are added in ascending order, each with one multiply-add,
//   whatever the
//            number of rows
//   tile     one panel by up to kQ8RowTile rows; a panel is read once from memory and stays in L1 for further
//   tiles check    NMSE < 1e-12 against the same formula in float64
//   (tests/plugins/backend_cpu/test_device.py) speed    make bench; see bench/results

#pragma once

#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

constexpr int kPanelVecs = static_cast<int>(kPanelRows) / Vec::kLanes;

// Integer sums of one group. One row alone takes four chains of dot products, which hide the latency of one.
template <int kRows>
LLMD_INLINE void sum_group(const uint8_t* weights, const int8_t* inputs, int64_t records,
                           Sums (&sums)[kRows]) {
    int64_t i = 0;
    if constexpr (kRows == 1) {
        Sums chain[3] = {set_sums(0), set_sums(0), set_sums(0)};
        for (; i + 4 <= records; i += 4) {
            sums[0] = dot(sums[0], load_record(weights + 64 * i), inputs + 4 * i);
            unroll<3>([&](auto c) LLMD_LAMBDA {
                chain[c] = dot(chain[c], load_record(weights + 64 * (i + c + 1)), inputs + 4 * (i + c + 1));
            });
        }
        sums[0] = add(add(sums[0], chain[0]), add(chain[1], chain[2]));
    }
    for (; i < records; ++i) {
        const Record record = load_record(weights + 64 * i);
        if constexpr (kRows >= 4) __builtin_prefetch(weights + 64 * i + 2048);
        unroll<kRows>([&](auto m)
                          LLMD_LAMBDA { sums[m] = dot(sums[m], record, inputs + 4 * (kRows * i + m)); });
    }
}

template <int kRows>
void q8_tile(const uint8_t* panel, const Q8Layout& layout, const TileRow& tile, const float* bias, float* out,
             int64_t stride, int64_t columns) {
    Vec totals[kRows * kPanelVecs];
    unroll<kRows * kPanelVecs>([&](auto i) LLMD_LAMBDA { totals[i] = set1(0.0F); });
    const int8_t* inputs = tile.values;
    for (int64_t g = 0; g < layout.groups(); ++g) {
        const int64_t records = layout.group_records(g);
        Sums sums[kRows];
        unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m] = set_sums(tile.corrections[g * kRows + m]); });
        sum_group<kRows>(panel + 32, inputs, records, sums);
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            const Vec scale = load(reinterpret_cast<const F16*>(panel) + v * Vec::kLanes);
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                Vec& total = totals[m * kPanelVecs + v];
                total = fma(to_float<v>(sums[m]), scale * set1(tile.scales[g * kRows + m]), total);
            });
        });
        panel += 32 + 64 * records;
        inputs += 4 * kRows * records;
    }
    for (int v = 0; v * Vec::kLanes < columns; ++v) {
        const int64_t left = columns - v * Vec::kLanes;
        const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        const Vec offset = bias == nullptr ? set1(0.0F) : load_n(bias + v * Vec::kLanes, n);
        for (int m = 0; m < kRows; ++m) {
            store_n(out + m * stride + v * Vec::kLanes, totals[m * kPanelVecs + v] + offset, n);
        }
    }
}

template <int kRows>
LLMD_INLINE void q8_tile_of(const uint8_t* panel, const Q8Layout& layout, const TileRow& tile,
                            const float* bias, float* out, int64_t stride, int64_t columns) {
    if constexpr (kRows > 0) {
        if (tile.rows == kRows) return q8_tile<kRows>(panel, layout, tile, bias, out, stride, columns);
        return q8_tile_of<kRows - 1>(panel, layout, tile, bias, out, stride, columns);
    }
}

// All rows against panel `p` of a weight.
LLMD_INLINE void q8_panel(const LinearArgs& args, const LinearTarget& target, int64_t p) {
    const Q8Layout layout{target.weight.cols, target.weight.group_size};
    const uint8_t* panel = static_cast<const uint8_t*>(target.weight.data) + p * layout.panel_bytes();
    const int64_t first = p * kPanelRows;
    const int64_t left = target.weight.rows - first;
    const int64_t columns = left < kPanelRows ? left : kPanelRows;
    const float* bias = target.bias == nullptr ? nullptr : target.bias + first;
    for (int64_t r = 0; r < args.rows; r += kQ8RowTile) {
        const TileRow tile = tile_row(args.scratch, layout, r, args.rows);
        float* out = target.out + r * target.weight.rows + first;
        q8_tile_of<kQ8RowTile>(panel, layout, tile, bias, out, target.weight.rows, columns);
    }
}

}  // namespace llmd::LLMD_ISA
