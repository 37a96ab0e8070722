// join: out[r] = [a of head 0, b of head 0, a of head 1, …]
//
//   a  [rows, heads, first]   b  [rows, heads, second]   out  [rows, heads, first + second]  f32
//   work   one row at a time
//   check  exact   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

void join(const JoinArgs& args, Worker& worker) {
    const int64_t width = args.first + args.second;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        for (int64_t h = r * args.heads; h < (r + 1) * args.heads; ++h) {
            float* out = args.out + h * width;
            std::memcpy(out, args.a + h * args.first, sizeof(float) * static_cast<size_t>(args.first));
            std::memcpy(out + args.first, args.b + h * args.second,
                        sizeof(float) * static_cast<size_t>(args.second));
        }
    });
}

}  // namespace llmd::LLMD_ISA
