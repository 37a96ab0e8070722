// Searches scales and minimums for groups of weights that minimise the squared error.
//
//   weights  a tile: eight groups      codes, sums  as described in group_tile.hpp
//   search   starts from 4 scales: codes = clip(rint(w / scale - minimum / scale)), then least squares
//            over the codes, twice; the fit with the smallest error wins, the first one of equals
//   check    bit for bit equal to llmd.models.formats.group_fit, which explains the algorithm
//            (tests/plugins/backend_cpu/test_quantizer.py)

#pragma once

#include "group_tile.hpp"

namespace llmd {

struct Fit {
    Lanes scale, minimum;
    Sums sums;    // of the codes that scale and minimum were fitted to
    Lanes error;  // squared error minus the sum of the squared weights
};

// The error of `scale * code + minimum`, for codes with these sums.
Lanes error_of(const Tile& tile, int way, Lanes scale, Lanes minimum, const Sums& sums);

// Codes are 0 .. most.
Wide<Fit> fit_affine(const Tile& tile, int most, bool minimum_below_zero);
// Codes are -half .. half - 1, and minimums are 0.
Wide<Fit> fit_symmetric(const Tile& tile, int half);

}  // namespace llmd
