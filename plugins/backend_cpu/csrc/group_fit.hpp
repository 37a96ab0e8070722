// Scales and minimums for groups of weights, searched for the least squared error.
//
//   weights  a tile: eight groups      codes, sums  as in the tile's header
//   search   from 4 scales: codes = clip(rint(w / scale - minimum / scale)), then least squares over the
//            codes, twice; the fit with the least error wins, the first of equals
//   check    equal to the last bit to llmd.models.formats.group_fit, which explains the steps
//            (tests/plugins/backend_cpu/test_quantizer.py)

#pragma once

#include "group_tile.hpp"

namespace llmd {

struct Fit {
    Lanes scale, minimum;
    Sums sums;    // of the codes that they were fitted to
    Lanes error;  // squared, less the sum of the squared weights
};

// Of `scale * code + minimum` with codes of these sums.
Lanes error_of(const Tile& tile, int way, Lanes scale, Lanes minimum, const Sums& sums);

// Codes are 0 .. most.
Wide<Fit> fit_affine(const Tile& tile, int most, bool minimum_below_zero);
// Codes are -half .. half - 1, and minimums 0.
Wide<Fit> fit_symmetric(const Tile& tile, int half);

}  // namespace llmd
