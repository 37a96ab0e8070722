// glu: out = activation(min(gate, limit)) * (up within +-limit)      activations: ops/activation.hpp
//
//   gate, up, out  [count]  f32     work  1024 elements at a time
//   check  absolute error < 1e-6 * max(1, |x|) * |up|   (tests/plugins/backend_cpu/test_device.py)
//   from   Shazeer 2020, "GLU Variants Improve Transformer"

#pragma once

#include "ops/activation.hpp"

namespace llmd::LLMD_ISA {

template <Activation kActivation>
void glu_with(const GluArgs& args, Worker& worker) {
    constexpr int64_t kGrain = 1024;
    const Vec least = set1(args.threshold);
    const Vec most = set1(args.limit);
    const auto product = [&](Vec gate, Vec up) LLMD_LAMBDA {
        // In this operand order, NaN stays NaN.
        const Vec within = max(set1(-args.limit), min(most, up));
        return activated<kActivation>(min(most, gate), least) * within;
    };
    for (Run run; worker.take_near(args.count, kGrain, run);) {
        int64_t i = run.first;
        for (; i + Vec::kLanes <= run.last; i += Vec::kLanes) {
            store(args.out + i, product(load(args.gate + i), load(args.up + i)));
        }
        if (i < run.last) {
            const int n = static_cast<int>(run.last - i);
            store_n(args.out + i, product(load_n(args.gate + i, n), load_n(args.up + i, n)), n);
        }
    }
}

void glu(const GluArgs& args, Worker& worker) {
    with_activation(args.activation, [&]<Activation kActivation>() { glu_with<kActivation>(args, worker); });
}

}  // namespace llmd::LLMD_ISA
