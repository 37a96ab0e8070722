// Sizes of activations that are stored as sums of bf16 numbers, for units that multiply bf16.
// ops/split.hpp describes the bytes.

#pragma once

#include "integer_layout.hpp"

namespace llmd {

constexpr int64_t kBf16Terms = 3;    // 8 bits each: together the 24 bits of a float32 significand
constexpr int64_t kBf16Inputs = 32;  // inputs of a row in one line
constexpr int64_t kBf16Pairs = kBf16Inputs / 2;

struct TermLayout {
    int64_t rows;
    int64_t cols;

    LLMD_SHARED constexpr int64_t lines() const { return pieces(cols, kBf16Inputs); }
    // Rows of a tile: 16, some of which may be unused in the last tile; fewer if there are fewer rows in
    // all.
    LLMD_SHARED constexpr int64_t width() const { return rows < kInputRows ? rows : kInputRows; }
    LLMD_SHARED constexpr int64_t tiles() const { return pieces(rows, kInputRows); }
    LLMD_SHARED constexpr int64_t term() const { return kBf16Inputs * width(); }
    LLMD_SHARED constexpr int64_t tile() const { return lines() * kBf16Terms * term(); }
    LLMD_SHARED constexpr int64_t numbers() const { return tiles() * tile(); }
};

}  // namespace llmd
