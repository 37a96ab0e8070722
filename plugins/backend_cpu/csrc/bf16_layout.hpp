// Activations as sums of bf16 numbers, for units that multiply those: the sizes. The bytes themselves are
// described in ops/split.hpp.

#pragma once

#include "integer_layout.hpp"

namespace llmd {

constexpr int64_t kBf16Terms = 3;    // of 8 bits each, as many as a float32 has
constexpr int64_t kBf16Inputs = 32;  // of a row, in a line
constexpr int64_t kBf16Pairs = kBf16Inputs / 2;

struct TermLayout {
    int64_t rows;
    int64_t cols;

    LLMD_SHARED constexpr int64_t lines() const { return pieces(cols, kBf16Inputs); }
    // Rows of a tile: 16, of which the last tile may leave some empty, but where there are fewer in all.
    LLMD_SHARED constexpr int64_t width() const { return rows < kInputRows ? rows : kInputRows; }
    LLMD_SHARED constexpr int64_t tiles() const { return pieces(rows, kInputRows); }
    LLMD_SHARED constexpr int64_t term() const { return kBf16Inputs * width(); }
    LLMD_SHARED constexpr int64_t tile() const { return lines() * kBf16Terms * term(); }
    LLMD_SHARED constexpr int64_t numbers() const { return tiles() * tile(); }
};

}  // namespace llmd
