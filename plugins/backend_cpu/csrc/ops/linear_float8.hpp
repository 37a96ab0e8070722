// linear, FP8: out[r][o] = sum_k x[r][k] * (w[o][k] * scale[o][k / group]) + bias[o]
//
//   x      [rows, cols]  f32
//   w      [outputs, cols]  e4m3fn, row-major where it is mapped; products with scales are rounded to f32
//   scale  [outputs, groups]  f32
//   order  as ops/linear_plain.hpp, for any number of rows
//   tile   4 weight rows by up to kPlainRowTile rows of x, widened in registers. With more rows, a panel is
//          widened to memory once, and multiplied as float32
//   check  relative error < 1e-5   (tests/plugins/backend_cpu/test_device.py)
//   why    docs/decisions/0087-fp8-weights-are-widened-in-registers.md

#pragma once

#include <type_traits>

#include "ops/linear_plain.hpp"
#include "ops/unpack_float8.hpp"

namespace llmd::LLMD_ISA {

// Rows of a weight, beginning with row `first`.
template <int kRows, int kOutputs>
void float8_tile(const float* x, const Matrix& weight, int64_t first, const float* bias, float* out,
                 int64_t stride) {
    const int64_t cols = weight.cols;
    const int64_t groups = weight.float8_groups();
    const E4M3* w = static_cast<const E4M3*>(weight.data) + first * cols;
    const float* scales = weight.scales + first * groups;
    Vec sums[kRows * kOutputs];
    unroll<kRows * kOutputs>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    for (int64_t g = 0; g < groups; ++g) {
        Vec scale[kOutputs];
        unroll<kOutputs>([&](auto o) LLMD_LAMBDA { scale[o] = set1(scales[o * groups + g] * kE4M3Factor); });
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
        int64_t k = g * weight.group_size;
        const int64_t end = k + weight.group_size < cols ? k + weight.group_size : cols;
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
            out[m * stride + o] = sum(sums[m * kOutputs + o]) + (bias == nullptr ? 0.0F : bias[o]);
        }
    }
}

template <int kRows, int kOutputs>
LLMD_INLINE void float8_tile_of(int64_t rows, const float* x, const Matrix& weight, int64_t first,
                                const float* bias, float* out, int64_t stride) {
    if constexpr (kRows > 0) {
        if (rows >= kRows) return float8_tile<kRows, kOutputs>(x, weight, first, bias, out, stride);
        return float8_tile_of<kRows - 1, kOutputs>(rows, x, weight, first, bias, out, stride);
    }
}

// Up to kPlainRowTile rows of x against rows [first, last) of a weight.
LLMD_INLINE void float8_block(const LinearArgs& args, const LinearTarget& target, int64_t first,
                              int64_t last) {
    const auto outputs = [&](auto count) LLMD_LAMBDA {
        const float* bias = target.bias == nullptr ? nullptr : target.bias + first;
        float8_tile_of<kPlainRowTile, count>(args.rows, args.x, target.weight, first, bias,
                                             target.out + first, target.weight.rows);
        first += count;
    };
    while (first + kWeightRows <= last) outputs(std::integral_constant<int, kWeightRows>{});
    while (first < last) outputs(std::integral_constant<int, 1>{});
}

// Panels [first, last) of a weight. `numbers` is memory for one of them as float32, [16, cols].
void float8_panels(const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last,
                   float* numbers) {
    const Matrix& weight = target.weight;
    for (int64_t output = first * kPanelRows; output < last * kPanelRows; output += kPanelRows) {
        const int64_t left = weight.rows - output;
        const int64_t count = left < kPanelRows ? left : kPanelRows;
        if (args.rows <= kPlainRowTile) {
            float8_block(args, target, output, output + count);
            continue;
        }
        for (int64_t r = 0; r < count; ++r) {
            unpack_float8(weight, output + r, 0, weight.cols, 1.0F, numbers + r * weight.cols);
        }
        const float* bias = target.bias == nullptr ? nullptr : target.bias + output;
        plain_block(args, PlainRows<float>{numbers, bias, target.out + output, weight.rows}, 0, count);
    }
}

}  // namespace llmd::LLMD_ISA
