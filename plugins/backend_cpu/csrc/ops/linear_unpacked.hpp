// linear, integers, activations not rounded: each panel is unpacked to float32 and multiplied by all rows.
//
//   out    as ops/linear_plain.hpp with the values of the weights, in its order
//   check  NMSE < 1e-9 against float64 (the cases "activations-f32" of llmd.testing.format_cases)
//   speed  ops/unpack.hpp takes 2 to 3 ns per weight, once for all rows of a step: meant to be exact, not
//          fast

#pragma once

#include "ops/linear_plain.hpp"
#include "ops/unpack.hpp"

namespace llmd::LLMD_ISA {

// Panels [first, last) of one weight, each unpacked to `numbers`, [16, cols].
void unpacked_panels(const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last,
                     float* numbers) {
    const Matrix& weight = target.weight;
    for (int64_t output = first * kPanelRows; output < last * kPanelRows; output += kPanelRows) {
        const int64_t left = weight.rows - output;
        const int64_t count = left < kPanelRows ? left : kPanelRows;
        for (int64_t r = 0; r < count; ++r) unpack_row(weight, output + r, 1.0F, numbers + r * weight.cols);
        const float* bias = target.bias == nullptr ? nullptr : target.bias + output;
        plain_block(args, PlainRows<float>{numbers, bias, target.out + output, weight.rows}, 0, count);
    }
}

}  // namespace llmd::LLMD_ISA
