// What experts do besides products: their gates, and the weighted sum of their outputs
//
//   expert_gate   out = activation(min(gate, limit)) * (max(min(up, limit), -limit) + offset)
//   weighted_sum  out[r] = sum_i weights[r][i] * x[row_numbers[r][i]], in ascending order of i
//
//   all     f32     work  1024 elements, or one row, at a time
//   check   NMSE < 1e-9   (the cases "experts" of llmd.testing.expert_cases)

#pragma once

#include "ops/activation.hpp"
#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

template <Activation kActivation>
void expert_gate_with(const ExpertGateArgs& args, Worker& worker) {
    constexpr int64_t kGrain = 1024;
    const Vec most = set1(args.limit);
    const Vec least = set1(-args.limit);
    const Vec offset = set1(args.offset);
    const auto gated = [&](Vec gate, Vec up) LLMD_LAMBDA {
        return activated<kActivation>(min(most, gate)) * (max(least, min(most, up)) + offset);
    };
    for (Run run; worker.take_near(args.count, kGrain, run);) {
        int64_t i = run.first;
        for (; i + Vec::kLanes <= run.last; i += Vec::kLanes) {
            store(args.out + i, gated(load(args.gate + i), load(args.up + i)));
        }
        if (i < run.last) {
            const int n = static_cast<int>(run.last - i);
            store_n(args.out + i, gated(load_n(args.gate + i, n), load_n(args.up + i, n)), n);
        }
    }
}

void expert_gate(const ExpertGateArgs& args, Worker& worker) {
    with_activation(args.activation,
                    [&]<Activation kActivation>() { expert_gate_with<kActivation>(args, worker); });
}

LLMD_INLINE void add_weighted(const WeightedSumArgs& args, int64_t row, float* out) {
    const int32_t* numbers = args.row_numbers + row * args.most;
    const float* weights = args.weights + row * args.most;
    const auto sum_at = [&](int64_t i, int n) LLMD_LAMBDA {
        Vec total = set1(0.0F);
        for (int64_t j = 0; j < args.counts[row]; ++j) {
            total = fma(load_n(args.x + numbers[j] * args.cols + i, n), set1(weights[j]), total);
        }
        store_n(out + i, total, n);
    };
    for (int64_t i = 0; i < args.cols; i += Vec::kLanes) {
        const int64_t left = args.cols - i;
        sum_at(i, static_cast<int>(left < Vec::kLanes ? left : Vec::kLanes));
    }
}

void weighted_sum(const WeightedSumArgs& args, Worker& worker) {
    each_near(worker, args.rows, 1,
              [&](int64_t r) LLMD_LAMBDA { add_weighted(args, r, args.out + r * args.cols); });
}

}  // namespace llmd::LLMD_ISA
