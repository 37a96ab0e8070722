// Quantises blocks of weight groups to int8: weight = coarse * (scale * code - minimum).
//
//   weights  tiles of a block: all groups that share a coarse scale
//   check    bit for bit equal to llmd.models.formats.byte_fit, which explains the algorithm
//            (tests/plugins/backend_cpu/test_quantizer.py)

#pragma once

#include <optional>
#include <span>

#include "group_fit.hpp"

namespace llmd {

// Tiles in a block.
constexpr int kMostTiles = 2;

struct ByteFit {
    uint16_t coarse;                                     // the bits of a float16
    Wide<Lanes> scale[kMostTiles], minimum[kMostTiles];  // integers

    // How to round the weights of a tile to codes.
    Wide<Rounding> rounding(size_t tile, int most) const;
};

// A block has one or two tiles. Codes are 0 .. most, scales 0 .. most_scale. Returns nothing if a coarse
// scale overflows float16.
std::optional<ByteFit> fit_bytes(std::span<const Tile> block, int most, int most_scale);

}  // namespace llmd
