// gated_delta: S = decay S + k (share (v - decay k S)), out = q S, row after row
//
//   S      [key_dim, value_dim] of a head, f32, in the slot of its sequence (state_args.hpp)
//   q, k   of the key head, convolved, with length 1 (q: key_dim^-1/2)     v  convolved
//   work   delta_rows: one row at a time. delta_states: as in state_columns.hpp
//   check  NMSE < 1e-9   (the conformance cases "gated_delta")
//   from   Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule"

#pragma once

#include "ops/norm.hpp"
#include "ops/state_columns.hpp"

namespace llmd::LLMD_ISA {

constexpr float kDeltaEps = 1e-6F;

// Gives each head of a row the length `length`.
LLMD_INLINE void normalize_heads(float* x, int64_t heads, int64_t dim, float length) {
    for (int64_t head = 0; head < heads; ++head) {
        float* at = x + head * dim;
        const Vec factor = set1(length / __builtin_sqrtf(sum_of_squares(at, dim, 0.0F) + kDeltaEps));
        for (int64_t i = 0; i < dim; i += Vec::kLanes) {
            const int n = dim - i < Vec::kLanes ? static_cast<int>(dim - i) : Vec::kLanes;
            store_n(at + i, load_n(at + i, n) * factor, n);
        }
    }
}

LLMD_INLINE void decay_factors(const StateArgs& args, int64_t row) {
    const int64_t width = args.shape.decay_width();
    const int64_t each = width / args.shape.heads;  // decays of a head
    const float* x = args.decay + row * width;
    float* out = args.rows_of.decays + row * width;
    for (int64_t i = 0; i < width; i += Vec::kLanes) {
        const int n = width - i < Vec::kLanes ? static_cast<int>(width - i) : Vec::kLanes;
        float rates[Vec::kLanes] = {};
        for (int lane = 0; lane < n; ++lane) rates[lane] = -args.rates[(i + lane) / each];
        const Vec time = softplus(load_n(x + i, n) + load_n(args.bias + i, n));
        store_n(out + i, exp(load(rates) * time), n);
    }
}

void delta_rows(const StateArgs& args, Worker& worker) {
    const StateShape& shape = args.shape;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        float* mixed = convolve_row(args, r);
        const float length = 1.0F / __builtin_sqrtf(static_cast<float>(shape.key_dim));
        normalize_heads(mixed, shape.key_heads, shape.key_dim, length);
        normalize_heads(mixed + shape.key_width(), shape.key_heads, shape.key_dim, 1.0F);
        decay_factors(args, r);
        const float* beta = args.beta + r * shape.heads;
        float* shares = args.rows_of.shares + r * shape.heads;
        for (int64_t i = 0; i < shape.heads; i += Vec::kLanes) {
            const int n = shape.heads - i < Vec::kLanes ? static_cast<int>(shape.heads - i) : Vec::kLanes;
            store_n(shares + i, sigmoid(load_n(beta + i, n)), n);
        }
    });
}

template <bool kDecaysElements>
struct DeltaRule {
    static constexpr bool kPerElement = kDecaysElements;
    static constexpr bool kRemoves = false;

    LLMD_INLINE StateStep step(const StateArgs& args, int64_t r, int64_t head, int64_t first) {
        return mixed_step<kPerElement>(args, r, head, first);
    }

    // A share of what the decayed state lacks of the value.
    template <bool kWhole, int kVecs>
    LLMD_INLINE void changes(const StateColumns<kWhole, kVecs>& of, const StateStep& step, Vec* change) {
        KeySums<kVecs> sums;
        each_element(of.key_dim, [&](int64_t i, auto part) LLMD_LAMBDA {
            Vec factor = set1(step.k[i]);
            if constexpr (kPerElement) factor = factor * set1(step.decays[i]);
            unroll<kVecs>([&](auto v)
                              LLMD_LAMBDA { sums.add(v * kPartialSums + part, factor, of.state(v, i)); });
        });
        unroll<kVecs>([&](auto v) LLMD_LAMBDA {
            Vec found = sums.total(v);
            if constexpr (!kPerElement) found = found * set1(step.decays[0]);
            change[v] = (of.value(v, step) - found) * set1(step.share);
        });
    }

    LLMD_INLINE Vec result(Vec read, const StateStep&, Vec) { return read; }
};

void delta_states(const StateArgs& args, Worker& worker) {
    if (args.shape.per_element)
        run_states<DeltaRule<true>>(args, worker);
    else
        run_states<DeltaRule<false>>(args, worker);
}

}  // namespace llmd::LLMD_ISA
