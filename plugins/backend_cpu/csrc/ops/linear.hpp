// linear: outs[i] = x weights[i]^T + biases[i], for weights of any format with the same input
//
//   work   panels of 16 output rows, numbered through all weights of the op; each thread begins with its
//          own share, which it reads as one stream, and then takes what is left of other shares
//   where  ops/linear_plain.hpp, ops/linear_integer.hpp, ops/linear_unpacked.hpp

#pragma once

#include "ops/linear_integer.hpp"
#include "ops/linear_plain.hpp"
#include "ops/linear_unpacked.hpp"
#include "ops/skip_zeros.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE int64_t panels_of(const Matrix& weight) { return pieces(weight.rows, kPanelRows); }

// Multiplies panels [first, last) of one weight; `integers` is the function for integers. `numbers` is
// memory for one unpacked panel if activations are not rounded, else null.
template <class Integers>
LLMD_INLINE void linear_panels(const LinearArgs& args, const LinearTarget& target, int64_t first,
                               int64_t last, float* numbers, Integers&& integers) {
    switch (target.weight.format) {
        case Format::kF32:
            return plain_panels<float>(args, target, first, last);
        case Format::kF16:
            return plain_panels<F16>(args, target, first, last);
        case Format::kBF16:
            return plain_panels<BF16>(args, target, first, last);
        case Format::kInteger:
            if (numbers != nullptr) return unpacked_panels(args, target, first, last, numbers);
            return integers(args, target, first, last);
    }
}

// Calls f(target, first panel, last, `numbers`) for all panels. A thread takes up to `most` tiles of
// panels at a time.
template <class F>
LLMD_INLINE void share_panels(const LinearArgs& args, Worker& worker, int64_t most, F&& f) {
    int64_t panels = 0;
    for (int64_t i = 0; i < args.num_targets; ++i) panels += panels_of(args.targets[i].weight);
    const int64_t tiles = pieces(panels, kPanelTile);
    float* numbers = args.unpacked == nullptr ? nullptr : args.unpacked + worker.id * kPanelRows * args.cols;
    const int64_t quarter = tiles / (4 * worker.count);
    const int64_t grain = quarter < 1 ? 1 : quarter < most ? quarter : most;
    for (Run run; worker.take_near(tiles, grain, run);) {
        const int64_t first = run.first * kPanelTile;
        const int64_t last = run.last * kPanelTile;
        int64_t before = 0;
        for (int64_t i = 0; i < args.num_targets; ++i) {
            const int64_t count = panels_of(args.targets[i].weight);
            const int64_t from = first > before ? first - before : 0;
            const int64_t to = last < before + count ? last - before : count;
            if (from < to) f(args.targets[i], from, to, numbers);
            before += count;
        }
    }
}

// Tiles of panels that a thread takes at a time if there are few rows: enough that the streams of a kernel
// are far apart.
LLMD_INLINE int64_t stream_tiles(const Matrix& weight) {
    constexpr int64_t kStreamBytes = 80 << 10;
    if (kRowPanels == 1 || weight.format != Format::kInteger) return 1;
    const int64_t bytes = PanelLayout{weight.cols, weight.integer}.panel_bytes();
    const int64_t panels = (kStreamBytes + bytes / 2) / bytes;
    return pieces((panels > 0 ? panels : 1) * kRowPanels, kPanelTile);
}

void linear(const LinearArgs& args, Worker& worker) {
    if (skip_zeros(args, worker)) return;
    const int64_t most = args.rows <= kScaledRows ? stream_tiles(args.targets[0].weight) : 1;
    share_panels(args, worker, most,
                 [&](const LinearTarget& target, int64_t first, int64_t last, float* numbers)
                     LLMD_LAMBDA { linear_panels(args, target, first, last, numbers, integer_panels); });
}

}  // namespace llmd::LLMD_ISA
