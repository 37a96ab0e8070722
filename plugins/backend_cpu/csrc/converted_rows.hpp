// Places in the converted rows of a stage, for ops that convert rows piece by piece.

#pragma once

#include "bf16_layout.hpp"
#include "kernels.hpp"

namespace llmd {

// Rows of one width, converted to one form.
struct RowForm {
    int64_t cols;
    InputForm form;

    // The place of row `row`, before which there are `terms` bf16 terms.
    ConvertedRows from(const ConvertedRows& all, int64_t row, int64_t terms) const {
        if (form.kind != InputKind::kInt8) return {nullptr, nullptr, nullptr, all.bf16_terms + terms};
        const InputLayout layout{cols, form.group_size, form.int8_terms};
        return {all.values + row * layout.values(), all.scales + row * layout.groups(),
                all.running + row * layout.running(), nullptr};
    }
};

}  // namespace llmd
