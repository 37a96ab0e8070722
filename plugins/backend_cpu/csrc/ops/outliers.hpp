// Outliers of a group: of each of 16 output rows 4 inputs, and residuals, in eights, that they are multiplied
// by besides their codes.
//
//   the inputs that they are at are gathered into a record of their own, and multiplied by the record of
//   residuals: both terms of int9

#pragma once

#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

template <class Columns>
struct OutliersAt {
    Columns columns;
    Residuals residuals;

    LLMD_INLINE_MEMBER explicit OutliersAt(const uint8_t* p)
        : columns(p), residuals(load_residuals(p + kPanelRows * kOutliers)) {}

    // What they add to the sums of 16 output rows for row m of a tile, whose group begins at a segment.
    LLMD_INLINE_MEMBER Sums sums(const InputTile& x, int64_t segment, int64_t m) const {
        const auto of_term = [&](int64_t term) LLMD_LAMBDA {
            const int8_t* lines = x.segment(segment, term) + m * kLineInputs;
            return multiply_each(gather(columns, lines, x.rows * kLineInputs), residuals);
        };
        return shift_up<kOutlierShift>(add(of_term(0), of_term(1)));
    }
};
using Outliers = OutliersAt<Columns>;

}  // namespace llmd::LLMD_ISA
