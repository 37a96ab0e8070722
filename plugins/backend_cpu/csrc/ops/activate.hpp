// activate: out = activation(x)      activations: ops/activation.hpp
//
//   x, out  [count]  f32     work  1024 elements at a time
//   check  absolute error < 1e-6 * max(1, |x|)   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/activation.hpp"

namespace llmd::LLMD_ISA {

template <Activation kActivation>
void activate_with(const ActivateArgs& args, Worker& worker) {
    constexpr int64_t kGrain = 1024;
    for (Run run; worker.take_near(args.count, kGrain, run);) {
        int64_t i = run.first;
        for (; i + Vec::kLanes <= run.last; i += Vec::kLanes) {
            store(args.out + i, activated<kActivation>(load(args.x + i)));
        }
        if (i < run.last) {
            const int n = static_cast<int>(run.last - i);
            store_n(args.out + i, activated<kActivation>(load_n(args.x + i, n)), n);
        }
    }
}

void activate(const ActivateArgs& args, Worker& worker) {
    with_activation(args.activation,
                    [&]<Activation kActivation>() { activate_with<kActivation>(args, worker); });
}

}  // namespace llmd::LLMD_ISA
