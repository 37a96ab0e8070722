// linear, integers: out[r][o] = sum over activation groups of x_scale * (sum over weight groups of scale *
// sum_i int[o][i] * q[r][i] + minimum * sum_i q[r][i]) + bias[o]
//
//   weights  panels of 16 rows, ops/pack.hpp     activations  ops/quantize.hpp     out  f32
//   order    integer sums are exact; for the rest see ops/integer_scales.hpp: the same for any number of
//            rows
//   where    few rows: ops/integer_row.hpp     more: ops/integer_tile.hpp
//   check    NMSE < 1e-12 against the same formula in float64, integer sums equal
//            (tests/plugins/backend_cpu/test_device.py)
//   speed    make bench; see bench/results

#pragma once

#include "ops/integer_panels.hpp"
#include "ops/integer_row.hpp"

namespace llmd::LLMD_ISA {

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
        with_scales<C>(of.layout.format, [&](auto scales) LLMD_LAMBDA {
            using S = decltype(scales);
            const RowKernel kernel = code_kernel<C, S>(args.rows);
            if (kernel != nullptr) return stream_panels(of, kernel, first, last);
            for (int64_t p = first; p < last; p += kPanelTile) {
                const int64_t count = p + kPanelTile < last ? kPanelTile : last - p;
                for (int64_t r = 0; r < args.rows; r += kRowBlock) {
                    const int64_t end = r + kRowBlock < args.rows ? r + kRowBlock : args.rows;
                    panel_rows<C, S>(of, p, count, r, end);
                }
            }
        });
    });
}

}  // namespace llmd::LLMD_ISA
