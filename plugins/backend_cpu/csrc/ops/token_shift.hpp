// token_shift: outs[i][r] = x[r] + (x[r - 1] - x[r]) * shares[i]
//
//   x, outs  [rows, width]  f32      shares  [width]  f32
//   state    [width]: the last row of a sequence, f32; zeros before the first
//   work     columns of a sequence, kShiftCols at a time, over all its rows
//   check    NMSE < 1e-10   (the conformance cases "token_shift")
//   from     Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era"

#pragma once

#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kShiftCols = 128;

// Mixes n columns of the rows of a sequence, and keeps those of the last row.
LLMD_INLINE void shift_columns(const ShiftArgs& args, int64_t sequence, int64_t first, int n) {
    const int64_t read = args.slots[2 * sequence];
    const int64_t written = args.slots[2 * sequence + 1];
    Vec before = read < 0 ? set1(0.0F) : load_n(args.pool + read * args.stride + first, n);
    for (int64_t r = args.row_offsets[sequence]; r < args.row_offsets[sequence + 1]; ++r) {
        const int64_t at = r * args.width + first;
        const Vec here = load_n(args.x + at, n);
        const Vec change = before - here;
        for (int64_t i = 0; i < args.count; ++i)
            store_n(args.outs[i] + at, fma(change, load_n(args.shares[i] + first, n), here), n);
        before = here;
    }
    store_n(args.pool + written * args.stride + first, before, n);
}

void token_shift(const ShiftArgs& args, Worker& worker) {
    const int64_t blocks = (args.width + kShiftCols - 1) / kShiftCols;
    each_near(worker, args.sequences * blocks, 1, [&](int64_t item) LLMD_LAMBDA {
        const int64_t first = item % blocks * kShiftCols;
        const int64_t last = first + kShiftCols < args.width ? first + kShiftCols : args.width;
        for (int64_t i = first; i < last; i += Vec::kLanes) {
            const int n = last - i < Vec::kLanes ? static_cast<int>(last - i) : Vec::kLanes;
            shift_columns(args, item / blocks, i, n);
        }
    });
}

}  // namespace llmd::LLMD_ISA
