// Outliers of a group: of each of 16 output rows 4 inputs, and residuals, in eights, that they are multiplied
// by besides their codes.
//
//   the inputs that they are at are gathered into a record of their own, and multiplied by the record of
//   residuals; of int9 the first term is taken, whose double is the number rounded to 8 bits

#pragma once

#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

template <class Columns>
struct OutliersAt {
    Columns columns;
    Residuals residuals;

    LLMD_INLINE_MEMBER explicit OutliersAt(const uint8_t* p)
        : columns(p), residuals(load_residuals(p + kPanelRows * kOutliers)) {}

    // What they add to the sums of 16 output rows for row m of a tile, whose group begins at a unit.
    LLMD_INLINE_MEMBER Sums sums(const InputTile& x, int64_t unit, int64_t m) const {
        const Bytes inputs = gather(columns, x.unit(unit) + m * kLineInputs, x.rows * kLineInputs);
        const Sums products = multiply_each(inputs, residuals);
        return x.terms == 1 ? shift_up<kOutlierShift>(products) : shift_up<kOutlierShift + 1>(products);
    }
};
using Outliers = OutliersAt<Columns>;

}  // namespace llmd::LLMD_ISA
