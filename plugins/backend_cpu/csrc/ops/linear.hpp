// linear: outs[i] = x weights[i]^T + biases[i], for weights of any format with the same input
//
//   work   panels of 16 output rows, numbered through all weights of the op; each thread begins with its
//          own share, which it reads as one stream, and then takes what is left of other shares
//   where  ops/linear_plain.hpp, ops/linear_float8.hpp, ops/linear_integer.hpp,
//          ops/linear_unpacked.hpp

#pragma once

#include "ops/linear_float8.hpp"
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
        case Format::kFloat8:
            return float8_panels(args, target, first, last, numbers);
        case Format::kInteger:
            if (numbers != nullptr) return unpacked_panels(args, target, first, last, numbers);
            return integers(args, target, first, last);
    }
}

LLMD_INLINE int64_t tiles_of(const LinearArgs& args) {
    int64_t panels = 0;
    for (int64_t i = 0; i < args.num_targets; ++i) panels += panels_of(args.targets[i].weight);
    return pieces(panels, kPanelTile);
}

// Calls f(target, first panel, last, memory for unpacked numbers) for tiles [first, last) of panels.
template <class F>
LLMD_INLINE void each_target(const LinearArgs& args, int64_t first_tile, int64_t last_tile, int thread,
                             const F& f) {
    float* numbers = args.unpacked == nullptr ? nullptr : args.unpacked + thread * kPanelRows * args.cols;
    const int64_t first = first_tile * kPanelTile;
    const int64_t last = last_tile * kPanelTile;
    int64_t before = 0;
    for (int64_t i = 0; i < args.num_targets; ++i) {
        const int64_t count = panels_of(args.targets[i].weight);
        const int64_t from = first > before ? first - before : 0;
        const int64_t to = last < before + count ? last - before : count;
        if (from < to) f(args.targets[i], from, to, numbers);
        before += count;
    }
}

// How many of `tiles` a thread takes at a time, at most `most`.
LLMD_INLINE int64_t tile_grain(int64_t tiles, int64_t most, int threads) {
    const int64_t quarter = tiles / (4 * threads);
    return quarter < 1 ? 1 : quarter < most ? quarter : most;
}

// Calls f(part, target, first panel, last, memory for unpacked numbers) for all panels of all parts. A thread
// takes up to `most(part)` tiles of panels at a time.
template <class Most, class F>
LLMD_INLINE void share_parts(const LinearBatchArgs& batch, Worker& worker, const Most& most, const F& f) {
    if (batch.count == 0) return;
    const int64_t tiles = tiles_of(batch.parts[0]);
    const int64_t grain = tile_grain(tiles * batch.count, most(batch.parts[0]), worker.count);
    for (Run run; worker.take_near(tiles * batch.count, grain, run);) {
        for (int64_t first = run.first; first < run.last;) {
            const int64_t part = first / tiles;
            const int64_t end = (part + 1) * tiles;
            const int64_t last = end < run.last ? end : run.last;
            const LinearArgs& args = batch.parts[part];
            each_target(args, first - part * tiles, last - part * tiles, worker.id,
                        [&](const LinearTarget& target, int64_t from, int64_t to, float* numbers)
                            LLMD_LAMBDA { f(args, target, from, to, numbers); });
            first = last;
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

// The most tiles that a thread takes at a time.
LLMD_INLINE int64_t most_tiles(const LinearArgs& args) {
    return args.rows <= kScaledRows ? stream_tiles(args.targets[0].weight) : 1;
}

void linear_batch(const LinearBatchArgs& batch, Worker& worker) {
    share_parts(
        batch, worker, most_tiles,
        [](const LinearArgs& args, const LinearTarget& target, int64_t first, int64_t last, float* numbers)
            LLMD_LAMBDA { linear_panels(args, target, first, last, numbers, integer_panels); });
}

// A batch of one: the kernels above take minutes to compile, so there is one copy of them.
void linear(const LinearArgs& args, Worker& worker) {
    if (!skip_zeros(args, worker)) linear_batch({&args, 1}, worker);
}

}  // namespace llmd::LLMD_ISA
