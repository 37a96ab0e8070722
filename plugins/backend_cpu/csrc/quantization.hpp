// Plain weights to integer groups, a tile of groups at a time, from first reading to the last code.
//
//   weights  [rows, row_len]  f32, f16 or bf16, row-major, of any alignment
//   codes    [rows, row_len]  u8           scales, minimums, coarse  f16, a row of groups for each row
//   groups   along a row, `group_size` inputs each, the last of a row may be short; read in widths of eight
//   check    equal to the last bit to llmd.models.formats.quantization, and docs/formats.md, which define the
//            steps (tests/plugins/backend_cpu/test_quantizer.py)
//   speed    ns of a core for a weight, from bf16 with SSE2: q4 and q3 7, q2 9, one level of scales 4 to 5,
//   q8
//            1.4, q8_wide 2.7; NumPy takes 5 (q8) to 45 (in int8)
//
// All return false where a weight or a scale is beyond the format; what was written then counts for nothing.

#pragma once

#include <cstddef>
#include <cstdint>

#include "group_tile.hpp"

namespace llmd {

struct PlainRows {
    const std::byte* data;
    PlainFormat format;
    int64_t rows;
    int64_t row_len;
};

// Of `quantize_eight_bits`: so many of each group, [rows, groups, count].
struct OutlierPlaces {
    int64_t count = 0;
    uint8_t* columns = nullptr;
    int8_t* residuals = nullptr;
};

// Scales of blocks of `per_coarse` groups, 8 or 16, that rows are whole multiples of.
struct ByteScales {
    int64_t per_coarse;
    int most_fine_scale;
    uint16_t* coarse;      // [rows, blocks]
    uint8_t* fine_scales;  // [rows, groups]
    uint8_t* fine_minimums;
};

// Groups have at most 256 weights where there are outliers, of which there are at most 8.
bool quantize_eight_bits(const PlainRows& weights, int64_t group_size, uint8_t* codes, uint16_t* scales,
                         const OutlierPlaces& outliers);
// Integers are -half .. half - 1, and codes half more.
bool quantize_symmetric(const PlainRows& weights, int64_t group_size, int half, uint8_t* codes,
                        uint16_t* scales);
// Codes are 0 .. most.
bool quantize_with_minimums(const PlainRows& weights, int64_t group_size, int most, uint8_t* codes,
                            uint16_t* scales, uint16_t* minimums);
bool quantize_bytes(const PlainRows& weights, int64_t group_size, int most, uint8_t* codes,
                    const ByteScales& scales);

}  // namespace llmd
