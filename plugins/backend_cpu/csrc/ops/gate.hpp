// gate: out[r][i] = x[r][i] / (1 + e^-gate[r][slice of i])
//
//   x, out  [rows, width]  f32      gate  [rows, slices]  f32      work  one row at a time
//   check   absolute error < 1e-6 * |x|   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE Vec sigmoid(Vec x) { return set1(1.0F) / (set1(1.0F) + exp(set1(0.0F) - x)); }

// A row with a gate for each element.
LLMD_INLINE void gate_elements(const float* x, const float* gate, float* out, int64_t width) {
    int64_t i = 0;
    for (; i + Vec::kLanes <= width; i += Vec::kLanes) store(out + i, load(x + i) * sigmoid(load(gate + i)));
    if (i < width) {
        const int n = static_cast<int>(width - i);
        store_n(out + i, load_n(x + i, n) * sigmoid(load_n(gate + i, n)), n);
    }
}

LLMD_INLINE void gate_slice(const float* x, Vec factor, float* out, int64_t width) {
    int64_t i = 0;
    for (; i + Vec::kLanes <= width; i += Vec::kLanes) store(out + i, load(x + i) * factor);
    if (i < width) {
        const int n = static_cast<int>(width - i);
        store_n(out + i, load_n(x + i, n) * factor, n);
    }
}

void gate(const GateArgs& args, Worker& worker) {
    const int64_t slice = args.width / args.slices;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const float* x = args.x + r * args.width;
        const float* gates = args.gate + r * args.slices;
        float* out = args.out + r * args.width;
        if (slice == 1) return gate_elements(x, gates, out, args.width);
        for (int64_t s = 0; s < args.slices; ++s) {
            gate_slice(x + s * slice, sigmoid(set1(gates[s])), out + s * slice, slice);
        }
    });
}

}  // namespace llmd::LLMD_ISA
