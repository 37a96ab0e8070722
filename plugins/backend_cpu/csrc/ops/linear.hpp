// linear: outs[i] = x weights[i]^T + biases[i], for weights of any format on one input
//
//   work   panels of 16 output rows, all weights of the op in one range; a thread takes runs of neighbouring
//   panels,
//          so that it reads one stream
//   where  ops/linear_plain.hpp, ops/linear_q8.hpp

#pragma once

#include "ops/linear_plain.hpp"
#include "ops/linear_q8.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE int64_t panels_of(const Matrix& weight) { return (weight.rows + kPanelRows - 1) / kPanelRows; }

LLMD_INLINE void linear_panel(const LinearArgs& args, const LinearTarget& target, int64_t p) {
    switch (target.weight.format) {
        case Format::kF32:
            return plain_panel<float>(args, target, p);
        case Format::kF16:
            return plain_panel<F16>(args, target, p);
        case Format::kBF16:
            return plain_panel<BF16>(args, target, p);
        case Format::kQ8:
            return q8_panel(args, target, p);
    }
}

// The weights of an op that are int8 have one group size (Parts checks it).
LLMD_INLINE int64_t int8_group(const LinearArgs& args) {
    for (int64_t i = 0; i < args.num_targets; ++i) {
        if (args.targets[i].weight.format == Format::kQ8) return args.targets[i].weight.group_size;
    }
    return 0;
}

void linear(const LinearArgs& args, Worker& worker) {
    if (const int64_t group = int8_group(args); group > 0) {
        quantize(args.x, args.rows, Q8Layout{args.cols, group}, args.scratch, worker);
        worker.barrier();
    }
    int64_t panels = 0;
    for (int64_t i = 0; i < args.num_targets; ++i) panels += panels_of(args.targets[i].weight);
    const int64_t share = panels / (8 * worker.count);
    const int64_t run = share > 1 ? share : 1;
    for (int64_t first; (first = worker.take(run)) < panels;) {
        int64_t target = 0;
        int64_t before = 0;
        for (int64_t p = first; p < first + run && p < panels; ++p) {
            while (p >= before + panels_of(args.targets[target].weight)) {
                before += panels_of(args.targets[target++].weight);
            }
            linear_panel(args, args.targets[target], p - before);
        }
    }
}

}  // namespace llmd::LLMD_ISA
