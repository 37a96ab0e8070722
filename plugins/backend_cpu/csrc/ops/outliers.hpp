// Outliers of a group: 4 inputs for each of 16 output rows, with residuals that count multiples of 8. An
// outlier is multiplied by its residual in addition to its code.
//
//   the inputs are gathered into a record and multiplied by the record of residuals: both terms of int9

#pragma once

#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

template <class Columns>
struct OutliersAt {
    Columns columns;
    Residuals residuals;

    LLMD_INLINE_MEMBER explicit OutliersAt(const uint8_t* p)
        : columns(p), residuals(load_residuals(p + kPanelRows * kOutliers)) {}

    // The products to add to the sums of 16 output rows for row m of a tile; the group begins at
    // `segment`.
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
