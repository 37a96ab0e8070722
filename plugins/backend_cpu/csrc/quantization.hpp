// Quantises plain weights to integer groups, from the first read to the last code, a tile of groups at a
// time.
//
//   weights  [rows, row_len]  f32, f16 or bf16, row-major, of any alignment
//   codes    [rows, row_len]  u8           scales, minimums, coarse  f16, a row of groups for each row
//   groups   `group_size` inputs along a row, fewer in the last group of a row; read eight at a time
//   check    bit for bit equal to llmd.models.formats.quantization and docs/formats.md, which define the
//            algorithm (tests/plugins/backend_cpu/test_quantizer.py)
//   speed    ns per weight on one core, from bf16 with SSE2: q4 and q3 7, q2 9, one level of scales
//            4 to 5, q8 1.4, q8_wide 2.7; NumPy takes 5 (q8) to 45 (in int8)
//
// All functions return false if a weight or a scale is out of range; the output is then undefined.

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

// For `quantize_eight_bits`: `count` outliers in each group, [rows, groups, count].
struct OutlierPlaces {
    int64_t count = 0;
    uint8_t* columns = nullptr;
    int8_t* residuals = nullptr;
};

// Scales of blocks of `per_coarse` groups, 8 or 16; a row is a whole number of blocks.
struct ByteScales {
    int64_t per_coarse;
    int most_fine_scale;
    uint16_t* coarse;      // [rows, blocks]
    uint8_t* fine_scales;  // [rows, groups]
    uint8_t* fine_minimums;
};

// With outliers, a group has at most 256 weights and at most 8 outliers.
bool quantize_eight_bits(const PlainRows& weights, int64_t group_size, uint8_t* codes, uint16_t* scales,
                         const OutlierPlaces& outliers);
// Integers are -half .. half - 1; a code is its integer plus half.
bool quantize_symmetric(const PlainRows& weights, int64_t group_size, int half, uint8_t* codes,
                        uint16_t* scales);
// Codes are 0 .. most.
bool quantize_with_minimums(const PlainRows& weights, int64_t group_size, int most, uint8_t* codes,
                            uint16_t* scales, uint16_t* minimums);
bool quantize_bytes(const PlainRows& weights, int64_t group_size, int most, uint8_t* codes,
                    const ByteScales& scales);

}  // namespace llmd
