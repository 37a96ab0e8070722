// Dynamic int8 activations: for each row and group, a = max |x|, q = rint(x * (127 / a)) within +-127, scale
// = a / 127
//
//   x  [rows, cols]  f32      groups as in the weights that they meet
//   out, for each tile of up to kQ8RowTile rows, with M rows in the tile and the tile's rows one after the
//   other in
//        each piece:
//     values       int8   [records][M][4]       zeros beyond cols
//     scales       f32    [groups][M]
//     corrections  int32  [groups][M]           -kWeightBias * sum of q: undoes the bias of the stored
//     weights
//   work   one row at a time
//   check  q equals the formula, halves to even; groups below 1e-30 count as zero
//          (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "q8_layout.hpp"

namespace llmd::LLMD_ISA {

struct TileRow {
    int8_t* values;
    float* scales;
    int32_t* corrections;
    int64_t rows;  // in the tile: the stride of everything
};

LLMD_INLINE TileRow tile_row(const Int8Rows& out, const Q8Layout& layout, int64_t row, int64_t rows) {
    const int64_t first = row / kQ8RowTile * kQ8RowTile;
    const int64_t count = rows - first < kQ8RowTile ? rows - first : kQ8RowTile;
    const int64_t inside = row - first;
    return {out.values + (first * layout.records() + inside) * 4,
            out.scales + first * layout.groups() + inside, out.corrections + first * layout.groups() + inside,
            count};
}

LLMD_INLINE float largest_magnitude(const float* x, int64_t count) {
    Vec top = set1(0.0F);
    int64_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) top = max(top, abs(load(x + i)));
    if (i < count) top = max(top, abs(load_n(x + i, static_cast<int>(count - i))));
    return largest(top);
}

// Quantises one group, returns the sum of its values.
LLMD_INLINE int32_t quantize_group(const float* x, int64_t count, float inverse, int8_t* out,
                                   int64_t stride) {
    Vec total = set1(0.0F);
    for (int64_t i = 0; i < count; i += Vec::kLanes) {
        const int64_t left = count - i;
        const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        const Vec scaled = round(load_n(x + i, n) * set1(inverse));
        const Vec q = max(set1(-127.0F), min(set1(127.0F), scaled));
        total = total + q;
        int8_t bytes[Vec::kLanes];
        store_int8(bytes, q);
        for (int j = 0; j < n; j += 4) std::memcpy(out + (i + j) * stride, bytes + j, 4);
    }
    return static_cast<int32_t>(sum(total));
}

void quantize(const QuantizeArgs& args, Worker& worker) {
    const Q8Layout layout{args.cols, args.group_size};
    for (int64_t r; (r = worker.take(1)) < args.rows;) {
        const TileRow to = tile_row(args.out, layout, r, args.rows);
        for (int64_t g = 0; g < layout.groups(); ++g) {
            const int64_t first = g * layout.group_size;
            const float* group = args.x + r * args.cols + first;
            const float top = largest_magnitude(group, layout.group_inputs(g));
            const float inverse = top > 1e-30F ? 127.0F / top : 0.0F;
            int8_t* values = to.values + first * to.rows;
            const int32_t total = quantize_group(group, layout.group_inputs(g), inverse, values, to.rows);
            to.scales[g * to.rows] = top > 1e-30F ? top / 127.0F : 0.0F;
            to.corrections[g * to.rows] = -kWeightBias * total;
        }
    }
}

}  // namespace llmd::LLMD_ISA
