// What layers that keep a matrix for each head do with rows before they change it: a short convolution with
// SiLU over the last rows of the sequence, and times that become decays; and what they keep between steps.
//
//   taps   [taps, width], the last for the row itself     bias  [width] or absent
//   work   one row at a time
//   order  a row is computed in the same order whatever rows share its step

#pragma once

#include "ops/gate.hpp"

namespace llmd::LLMD_ISA {

// ln(1 + u) for u in [0, 1]: the series of 2 artanh(u / (2 + u)) to its 13th power, relative error < 2e-7.
LLMD_INLINE Vec log_one_plus(Vec u) {
    const Vec z = u / (set1(2.0F) + u);
    const Vec square = z * z;
    Vec series = set1(2.0F / 13);
    series = fma(series, square, set1(2.0F / 11));
    series = fma(series, square, set1(2.0F / 9));
    series = fma(series, square, set1(2.0F / 7));
    series = fma(series, square, set1(2.0F / 5));
    series = fma(series, square, set1(2.0F / 3));
    series = fma(series, square, set1(2.0F));
    return series * z;
}

LLMD_INLINE Vec softplus(Vec x) { return max(set1(0.0F), x) + log_one_plus(exp(set1(0.0F) - abs(x))); }

// A row of a step and what its sequence has before it.
struct StateRow {
    int64_t row;
    int64_t number;     // in its sequence and step
    const float* kept;  // [taps - 1][width] before the step; null: zeros
};

LLMD_INLINE StateRow state_row(const StateArgs& args, int64_t row) {
    int64_t s = 0;
    while (args.row_offsets[s + 1] <= row) ++s;
    const int64_t slot = args.slots[2 * s];
    return {row, row - args.row_offsets[s], slot < 0 ? nullptr : args.pool + slot * args.stride};
}

// Convolves one input of a row, whose columns begin at `first` among those of all three.
LLMD_INLINE void convolve(const StateArgs& args, const StateRow& of, const float* x, int64_t width,
                          int64_t first) {
    const int64_t all = args.shape.width();
    float* out = args.rows_of.mixed + of.row * all + first;
    for (int64_t i = 0; i < width; i += Vec::kLanes) {
        const int n = width - i < Vec::kLanes ? static_cast<int>(width - i) : Vec::kLanes;
        Vec total = args.taps_bias == nullptr ? set1(0.0F) : load_n(args.taps_bias + first + i, n);
        for (int64_t tap = 0; tap < args.shape.taps; ++tap) {
            const int64_t back = args.shape.taps - 1 - tap;
            const float* from = nullptr;
            if (back <= of.number)
                from = x + (of.row - back) * width + i;
            else if (of.kept != nullptr)
                from = of.kept + (of.number + tap) * all + first + i;
            if (from == nullptr) continue;
            total = fma(load_n(args.taps + tap * all + first + i, n), load_n(from, n), total);
        }
        store_n(out + i, activated<kSilu>(total), n);
    }
}

// Convolves all inputs of a row; returns its place in `StateRows::mixed`.
LLMD_INLINE float* convolve_row(const StateArgs& args, int64_t r) {
    const StateRow row = state_row(args, r);
    const int64_t keys = args.shape.key_width();
    convolve(args, row, args.inputs[0], keys, 0);
    convolve(args, row, args.inputs[1], keys, keys);
    convolve(args, row, args.inputs[2], args.shape.value_width(), 2 * keys);
    return args.rows_of.mixed + r * args.shape.width();
}

// Brings the state that a sequence begins with to the slot that it writes.
LLMD_INLINE void begin_state(const StateArgs& args, int64_t sequence, int64_t at, int64_t count) {
    const int64_t read = args.slots[2 * sequence];
    const int64_t written = args.slots[2 * sequence + 1];
    float* to = args.pool + written * args.stride + at;
    const size_t bytes = sizeof(float) * static_cast<size_t>(count);
    if (read < 0)
        std::memset(to, 0, bytes);
    else if (read != written)
        std::memcpy(to, args.pool + read * args.stride + at, bytes);
}

// Keeps the last rows of a sequence for the convolutions of the next step.
LLMD_INLINE void keep_rows(const StateArgs& args, int64_t sequence) {
    const StateShape& shape = args.shape;
    const int64_t count = shape.taps - 1;
    const int64_t first = args.row_offsets[sequence];
    const int64_t rows = args.row_offsets[sequence + 1] - first;
    const int64_t widths[3] = {shape.key_width(), shape.key_width(), shape.value_width()};
    begin_state(args, sequence, 0, shape.kept());
    float* kept = args.pool + args.slots[2 * sequence + 1] * args.stride;
    for (int64_t j = 0; j < count; ++j) {
        const int64_t number = rows - count + j;  // in the step; negative: kept before
        float* to = kept + j * shape.width();
        if (number < 0) {
            std::memmove(to, kept + (j + rows) * shape.width(),
                         sizeof(float) * static_cast<size_t>(shape.width()));
            continue;
        }
        for (int i = 0; i < 3; to += widths[i], ++i) {
            std::memcpy(to, args.inputs[i] + (first + number) * widths[i],
                        sizeof(float) * static_cast<size_t>(widths[i]));
        }
    }
}

}  // namespace llmd::LLMD_ISA
