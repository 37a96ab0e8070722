// linear, int8: out[r][o] = sum over groups g of float(sum_k qw[o][k] * qx[r][k]) * (scale_w[o][g] *
// scale_x[r][g])
//
//   weights  panels of 16 rows, ops/q8_panels.hpp     activations  ops/quantize.hpp     out  f32
//   order    integer sums are exact; groups are added in ascending order, each with one multiply-add,
//   whatever the
//            number of rows
//   tile     kQ8PanelTile panels by up to kQ8RowTile rows; panels are read once from memory and stay close
//   for further
//            tiles
//   check    NMSE < 1e-12 against the same formula in float64   (tests/plugins/backend_cpu/test_device.py)
//   speed    make bench; see bench/results

#pragma once

#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

constexpr int kPanelVecs = static_cast<int>(kPanelRows) / Vec::kLanes;

// Where one output tile goes.
struct TileOut {
    float* out;         // first row and output of the tile
    const float* bias;  // of the first output, or null
    int64_t stride;     // between rows
    int64_t columns;    // outputs that exist
};

// Integer sums of one group of one row: four chains of dot products hide the latency of one.
LLMD_INLINE Sums sum_row_group(const uint8_t* weights, const int8_t* inputs, int64_t records, Sums first) {
    Sums chain[4] = {first, set_sums(0), set_sums(0), set_sums(0)};
    int64_t i = 0;
    for (; i + 4 <= records; i += 4) {
        unroll<4>([&](auto c) LLMD_LAMBDA {
            chain[c] = dot(chain[c], load_record(weights + 64 * (i + c)), load_inputs(inputs + 4 * (i + c)));
        });
    }
    for (; i < records; ++i)
        chain[0] = dot(chain[0], load_record(weights + 64 * i), load_inputs(inputs + 4 * i));
    return add(add(chain[0], chain[1]), add(chain[2], chain[3]));
}

// Integer sums of one group: [kRows][kPanels], the panels `stride` bytes apart.
template <int kRows, int kPanels>
LLMD_INLINE void sum_group(const uint8_t* weights, int64_t stride, const int8_t* inputs, int64_t records,
                           Sums (&sums)[kRows * kPanels]) {
    if constexpr (kRows == 1) {
        unroll<kPanels>([&](auto p) LLMD_LAMBDA {
            sums[p] = sum_row_group(weights + p * stride, inputs, records, sums[p]);
        });
        return;
    }
    for (int64_t i = 0; i < records; ++i) {
        Record record[kPanels];
        unroll<kPanels>([&](auto p) LLMD_LAMBDA {
            record[p] = load_record(weights + p * stride + 64 * i);
            if constexpr (kRows >= 4) __builtin_prefetch(weights + p * stride + 64 * i + 2048);
        });
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const Inputs quad = load_inputs(inputs + 4 * (kRows * i + m));
            unroll<kPanels>([&](auto p) LLMD_LAMBDA {
                sums[m * kPanels + p] = dot(sums[m * kPanels + p], record[p], quad);
            });
        });
    }
}

template <int kRows, int kPanels>
void q8_tile(const uint8_t* panel, const Q8Layout& layout, const TileRow& tile, const TileOut& to) {
    constexpr int kVecs = kPanels * kPanelVecs;
    const int64_t stride = layout.panel_bytes();
    Vec totals[kRows * kVecs];
    unroll<kRows * kVecs>([&](auto i) LLMD_LAMBDA { totals[i] = set1(0.0F); });
    const int8_t* inputs = tile.values;
    const int64_t groups = layout.groups();
    for (int64_t g = 0; g < groups; ++g) {
        const int64_t records = layout.group_records(g);
        Sums sums[kRows * kPanels];
        unroll<kRows * kPanels>(
            [&](auto i) LLMD_LAMBDA { sums[i] = set_sums(tile.corrections[g * kRows + i / kPanels]); });
        sum_group<kRows, kPanels>(panel + 32, stride, inputs, records, sums);
        unroll<kVecs>([&](auto v) LLMD_LAMBDA {
            constexpr int kPanel = v / kPanelVecs;
            constexpr int kPart = v % kPanelVecs;
            const Vec scale =
                load(reinterpret_cast<const F16*>(panel + kPanel * stride) + kPart * Vec::kLanes);
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                Vec& total = totals[m * kVecs + v];
                const Vec factor = scale * set1(tile.scales[g * kRows + m]);
                total = fma(to_float<kPart>(sums[m * kPanels + kPanel]), factor, total);
            });
        });
        panel += 32 + 64 * records;
        inputs += 4 * kRows * records;
    }
    unroll<kVecs>([&](auto v) LLMD_LAMBDA {
        const int64_t left = to.columns - v * Vec::kLanes;
        const int n = left < 0 ? 0 : left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        const Vec offset = to.bias == nullptr ? set1(0.0F) : load_n(to.bias + v * Vec::kLanes, n);
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            store_n(to.out + m * to.stride + v * Vec::kLanes, totals[m * kVecs + v] + offset, n);
        });
    });
}

template <int kRows, int kPanels>
LLMD_INLINE void q8_tile_of(const uint8_t* panel, const Q8Layout& layout, const TileRow& tile,
                            const TileOut& to) {
    if constexpr (kRows > 0) {
        if (tile.rows == kRows) return q8_tile<kRows, kPanels>(panel, layout, tile, to);
        return q8_tile_of<kRows - 1, kPanels>(panel, layout, tile, to);
    }
}

// All rows against kPanels panels of a weight from panel `p` on.
template <int kPanels>
void q8_panels(const LinearArgs& args, const LinearTarget& target, int64_t p) {
    const Q8Layout layout{target.weight.cols, target.weight.group_size};
    const uint8_t* panel = static_cast<const uint8_t*>(target.weight.data) + p * layout.panel_bytes();
    const int64_t first = p * kPanelRows;
    const int64_t left = target.weight.rows - first;
    const int64_t columns = left < kPanels * kPanelRows ? left : kPanels * kPanelRows;
    const float* bias = target.bias == nullptr ? nullptr : target.bias + first;
    for (int64_t r = 0; r < args.rows; r += kQ8RowTile) {
        const TileRow tile = tile_row(args.quantized, layout, r, args.rows);
        float* out = target.out + r * target.weight.rows + first;
        q8_tile_of<kQ8RowTile, kPanels>(panel, layout, tile, {out, bias, target.weight.rows, columns});
    }
}

}  // namespace llmd::LLMD_ISA
