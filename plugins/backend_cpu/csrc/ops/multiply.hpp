// multiply: out = x * factor
//
//   x, out  [count]  f32, row after row      factor  [1]  f32
//   work    1024 elements at a time
//   check   one rounding   (tests/plugins/backend_cpu/test_device.py)

#pragma once

namespace llmd::LLMD_ISA {

void multiply(const MultiplyArgs& args, Worker& worker) {
    constexpr int64_t kGrain = 1024;
    const Vec factor = set1(*args.factor);
    for (Run run; worker.take_near(args.count, kGrain, run);) {
        int64_t i = run.first;
        for (; i + Vec::kLanes <= run.last; i += Vec::kLanes) store(args.out + i, load(args.x + i) * factor);
        if (i < run.last) {
            const int n = static_cast<int>(run.last - i);
            store_n(args.out + i, load_n(args.x + i, n) * factor, n);
        }
    }
}

}  // namespace llmd::LLMD_ISA
