// Blocks of groups of weights as int8 with a shared scale: a weight is coarse * (scale * code - minimum).
//
//   weights  tiles of a block: all groups that share a coarse scale
//   check    equal to the last bit to llmd.models.formats.byte_fit, which explains the steps
//            (tests/plugins/backend_cpu/test_quantizer.py)

#pragma once

#include <optional>
#include <span>

#include "group_fit.hpp"

namespace llmd {

// Of a block.
constexpr int kMostTiles = 2;

struct ByteFit {
    uint16_t coarse;                                     // float16
    Wide<Lanes> scale[kMostTiles], minimum[kMostTiles];  // whole numbers

    // What gives the codes of a tile.
    Wide<Rounding> rounding(size_t tile, int most) const;
};

// A block is one or two tiles; codes are 0 .. most, scales 0 .. most_scale. None where a coarse scale lies
// beyond float16.
std::optional<ByteFit> fit_bytes(std::span<const Tile> block, int most, int most_scale);

}  // namespace llmd
