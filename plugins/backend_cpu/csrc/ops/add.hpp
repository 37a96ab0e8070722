// add: out = a + b * scale
//
//   a, b, out  [count]  f32, row after row
//   work       1024 elements at a time
//   check      one or two roundings   (tests/plugins/backend_cpu/test_device.py)

#pragma once

namespace llmd::LLMD_ISA {

void add(const AddArgs& args, Worker& worker) {
    constexpr int64_t kGrain = 1024;
    const Vec scale = set1(args.scale);
    for (Run run; worker.take_near(args.count, kGrain, run);) {
        int64_t i = run.first;
        for (; i + Vec::kLanes <= run.last; i += Vec::kLanes) {
            store(args.out + i, fma(load(args.b + i), scale, load(args.a + i)));
        }
        if (i < run.last) {
            const int n = static_cast<int>(run.last - i);
            store_n(args.out + i, fma(load_n(args.b + i, n), scale, load_n(args.a + i, n)), n);
        }
    }
}

}  // namespace llmd::LLMD_ISA
