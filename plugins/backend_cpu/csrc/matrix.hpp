// Matrices of weights, as kernels multiply them and as they are given to be packed.

#pragma once

#include <cstdint>

#include "integer_layout.hpp"

namespace llmd {

enum class Format : int32_t { kF32, kF16, kBF16, kFloat8, kInteger };

// A matrix [rows, cols]. Plain formats and FP8: `data` is row-major. Integers: packed panels, see
// ops/pack.hpp.
struct Matrix {
    Format format;
    int64_t rows;
    int64_t cols;
    IntegerFormat integer;
    const void* data;
    const void* strips = nullptr;   // the input-major copy of the same integers, or null
    const float* scales = nullptr;  // of FP8: [rows, groups]
    int64_t group_size = 0;         // of FP8: inputs that share a scale

    LLMD_SHARED int64_t float8_groups() const { return pieces(cols, group_size); }
};

// Scales or minimums [rows, columns] as Python passes them.
struct GroupScales {
    const void* coarse;  // float16, or float32 where `wide`; [rows, coarse_columns]
    bool wide;
    int64_t coarse_columns;  // 1: one scale per row
    const int8_t* fine;      // [rows, fine_columns], null if scales have one level
    int64_t fine_columns;
};

// A matrix of quantised codes as Python passes it.
struct IntegerMatrix {
    int64_t rows;
    int64_t cols;
    IntegerFormat format;
    const uint8_t* codes;  // [rows, cols]
    GroupScales scales;
    GroupScales minimums;  // `coarse` is null if there are none
    // [rows, groups, outliers], null if the format has no outliers
    const uint8_t* outlier_columns = nullptr;
    const int8_t* outlier_residuals = nullptr;
};

}  // namespace llmd
