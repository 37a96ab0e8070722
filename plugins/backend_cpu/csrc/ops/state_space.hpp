// state_space: S = exp(-rate time) S + B (time x), out = C S + skip x, row after row
//
//   S      [state_size, head_dim] of a head, f32, in the slot of its sequence (state_args.hpp)
//   time   softplus(time + bias), between two bounds     B, C  of the group, convolved     x  convolved
//   work   space_rows: one row at a time. space_states: as in state_columns.hpp
//   check  NMSE < 1e-9   (the conformance cases "state_space")
//   from   Dao & Gu 2024, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through
//          Structured State Space Duality" (Mamba-2)

#pragma once

#include "ops/state_columns.hpp"

namespace llmd::LLMD_ISA {

void space_rows(const StateArgs& args, Worker& worker) {
    const int64_t heads = args.shape.heads;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        convolve_row(args, r);
        for (int64_t i = 0; i < heads; i += Vec::kLanes) {
            const int n = heads - i < Vec::kLanes ? static_cast<int>(heads - i) : Vec::kLanes;
            const Vec stated = softplus(load_n(args.decay + r * heads + i, n) + load_n(args.bias + i, n));
            const Vec time = min(max(stated, set1(args.least_time)), set1(args.most_time));
            store_n(args.rows_of.shares + r * heads + i, time, n);
            const Vec exponent = set1(0.0F) - load_n(args.rates + i, n) * time;
            store_n(args.rows_of.decays + r * heads + i, exp(exponent), n);
        }
    });
}

struct SpaceRule {
    static constexpr bool kPerElement = false;
    static constexpr bool kRemoves = false;

    LLMD_INLINE StateStep step(const StateArgs& args, int64_t r, int64_t head, int64_t first) {
        return mixed_step<kPerElement>(args, r, head, first);
    }

    template <bool kWhole, int kVecs>
    LLMD_INLINE void changes(const StateColumns<kWhole, kVecs>& of, const StateStep& step, Vec* change) {
        unroll<kVecs>([&](auto v) LLMD_LAMBDA { change[v] = of.value(v, step) * set1(step.share); });
    }

    LLMD_INLINE Vec result(Vec read, const StateStep& step, Vec value) {
        return fma(set1(step.skip), value, read);
    }
};

void space_states(const StateArgs& args, Worker& worker) { run_states<SpaceRule>(args, worker); }

}  // namespace llmd::LLMD_ISA
