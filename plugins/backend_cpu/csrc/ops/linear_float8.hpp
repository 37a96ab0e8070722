// linear, FP8: out[r][o] = sum_k x[r][k] * (w[o][k] * scale[o][k / group]) + bias[o]
//
//   x      [rows, cols]  f32
//   w      [outputs, cols]  e4m3fn, row-major where it is mapped; products with scales are rounded to f32
//   scale  [outputs, groups]  f32
//   order  as ops/linear_plain.hpp, for any number of rows
//   tile   4 weight rows by up to kPlainRowTile rows of x, widened in registers. With more rows, two panels
//          become float16 in memory first, once for all rows: the cheaper half of widening them
//   check  relative error < 1e-5   (tests/plugins/backend_cpu/test_device.py)
//   why    docs/decisions/0087-fp8-weights-are-widened-in-registers.md

#pragma once

#include "ops/linear_plain.hpp"
#include "ops/unpack_float8.hpp"

namespace llmd::LLMD_ISA {

// Rows of a weight, as E4M3 or as the float16 with the same fields, and where their outputs go.
template <class Element>
struct Float8Rows {
    const Element* weights;
    const float* scales;
    int64_t cols;
    int64_t group_size;
    int64_t groups;
    const float* bias;  // or null
    float* out;
    int64_t stride;
};

template <int kRows, int kOutputs, class Element>
void float8_tile(const float* x, const Float8Rows<Element>& of, int64_t first, float* out) {
    const int64_t cols = of.cols;
    const Element* w = of.weights + first * cols;
    const float* scales = of.scales + first * of.groups;
    Vec sums[kRows * kOutputs];
    unroll<kRows * kOutputs>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    for (int64_t g = 0; g < of.groups; ++g) {
        Vec scale[kOutputs];
        unroll<kOutputs>([&](auto o)
                             LLMD_LAMBDA { scale[o] = set1(scales[o * of.groups + g] * kE4M3Factor); });
        const auto add_products = [&](auto&& at) LLMD_LAMBDA {
            Vec numbers[kOutputs];
            unroll<kOutputs>([&](auto o) LLMD_LAMBDA { numbers[o] = at(w + o * cols) * scale[o]; });
            unroll<kRows>([&](auto m) LLMD_LAMBDA {
                const Vec input = at(x + m * cols);
                unroll<kOutputs>([&](auto o) LLMD_LAMBDA {
                    sums[m * kOutputs + o] = fma(input, numbers[o], sums[m * kOutputs + o]);
                });
            });
        };
        int64_t k = g * of.group_size;
        const int64_t end = k + of.group_size < cols ? k + of.group_size : cols;
        for (; k + Vec::kLanes <= end; k += Vec::kLanes) {
            // As in ops/linear_plain.hpp: the next rows.
            if constexpr (kRows == 1) {
                unroll<kOutputs>([&](auto o)
                                     LLMD_LAMBDA { __builtin_prefetch(w + (o + kOutputs) * cols + k); });
            }
            add_products([&](const auto* row) LLMD_LAMBDA { return load(row + k); });
        }
        if (k < end) {
            add_products([&](const auto* row)
                             LLMD_LAMBDA { return load_n(row + k, static_cast<int>(end - k)); });
        }
    }
    for (int m = 0; m < kRows; ++m) {
        for (int o = 0; o < kOutputs; ++o) {
            out[m * of.stride + o] =
                sum(sums[m * kOutputs + o]) + (of.bias == nullptr ? 0.0F : of.bias[first + o]);
        }
    }
}

template <int kRows, int kOutputs, class Element>
LLMD_INLINE void float8_tile_of(int64_t rows, const float* x, const Float8Rows<Element>& of, int64_t first,
                                float* out) {
    if constexpr (kRows > 0) {
        if (rows >= kRows) return float8_tile<kRows, kOutputs>(x, of, first, out);
        return float8_tile_of<kRows - 1, kOutputs>(rows, x, of, first, out);
    }
}

// All rows of x against rows [first, last) of a weight.
template <class Element>
LLMD_INLINE void float8_block(const LinearArgs& args, const Float8Rows<Element>& of, int64_t first,
                              int64_t last) {
    for (int64_t row = 0; row < args.rows; row += kPlainRowTile) {
        const float* x = args.x + row * args.cols;
        float* out = of.out + row * of.stride;
        int64_t output = first;
        for (; output + kWeightRows <= last; output += kWeightRows) {
            float8_tile_of<kPlainRowTile, kWeightRows>(args.rows - row, x, of, output, out + output);
        }
        for (; output < last; ++output) {
            float8_tile_of<kPlainRowTile, 1>(args.rows - row, x, of, output, out + output);
        }
    }
}

// Panels [first, last) of a weight. `memory` is [16, cols] floats, which is two panels of float16.
void float8_panels(const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last,
                   float* memory) {
    const Matrix& weight = target.weight;
    const Float8Rows<E4M3> stored{static_cast<const E4M3*>(weight.data),
                                  weight.scales,
                                  weight.cols,
                                  weight.group_size,
                                  weight.float8_groups(),
                                  target.bias,
                                  target.out,
                                  weight.rows};
    const int64_t end = last * kPanelRows < weight.rows ? last * kPanelRows : weight.rows;
    if (args.rows <= kPlainRowTile) return float8_block(args, stored, first * kPanelRows, end);
    auto* widened = reinterpret_cast<F16*>(memory);
    for (int64_t output = first * kPanelRows; output < end; output += 2 * kPanelRows) {
        const int64_t count = end - output < 2 * kPanelRows ? end - output : 2 * kPanelRows;
        widen_fields(stored.weights + output * weight.cols, count * weight.cols, widened);
        const Float8Rows<F16> rows{widened,
                                   stored.scales + output * stored.groups,
                                   stored.cols,
                                   stored.group_size,
                                   stored.groups,
                                   target.bias == nullptr ? nullptr : target.bias + output,
                                   target.out + output,
                                   weight.rows};
        float8_block(args, rows, 0, count);
    }
}

}  // namespace llmd::LLMD_ISA
