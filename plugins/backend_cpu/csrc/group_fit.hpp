// Scales and minimums for groups of weights, searched for the least squared error.
//
//   weights, codes  [size, groups]  f32, row-major: a group is a column     others  [groups]  f32
//   search          from 4 scales: codes = clip(rint(w / scale - minimum / scale)), then least squares over
//   the
//                   codes, twice; the fit with the least error wins, the first of equals
//   check           equal to the last bit to llmd.models.formats.group_fit, which explains the steps
//                   (tests/plugins/backend_cpu/test_group_fit.py): float32 throughout, sums in the order of a
//                   group's weights, no contraction
//   speed           2 to 3 ns a weight with SSE2, where NumPy takes 20 and more

#pragma once

#include <cstdint>

namespace llmd {

struct GroupedWeights {
    const float* data;
    int64_t size;
    int64_t groups;
};

struct GroupSums {
    float* codes;
    float* squares;   // of codes
    float* products;  // of codes and weights
};

struct GroupFit {
    float* scale;
    float* minimum;
    GroupSums sums;
    float* error;  // squared, less the sum of the squared weights
};

// Codes are 0 .. most.
void fit_affine(const GroupedWeights& weights, int most, bool minimum_below_zero, const GroupFit& fit);
// Codes are -half .. half - 1, and minimums 0.
void fit_symmetric(const GroupedWeights& weights, int half, const GroupFit& fit);

}  // namespace llmd
