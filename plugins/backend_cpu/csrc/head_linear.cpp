#include "head_linear.hpp"

#include <algorithm>

#include "operands.hpp"

namespace llmd {

HeadSizes head_sizes(const Weights& weights, const StageLimits& limits) {
    HeadSizes most;
    for (const Op& op : weights.program.ops) {
        if (op.kind != OpKind::kHeadLinear) continue;
        const Matrix& weight = weights.matrix(op.weights.at(0));
        const int64_t slices = limits.max_rows * weights.members(op.weights.at(0));
        most.slices = std::max(most.slices, slices);
        most.inputs = std::max(most.inputs, slices * weight.cols);
        most.outputs = std::max(most.outputs, slices * weight.rows);
    }
    return most;
}

HeadLinearCall::HeadLinearCall(const Operands& of, const Bindings& to)
    : x_(of.input(0)),
      out_(of.output(0)),
      form_{of.matrix(0).cols, bind_convert(of.input(0), of.matrix(0), to).form},
      rows_(to.head_rows),
      converted_(to.converted),
      unpacked_(memory_for_unpacked(form_.form, to)) {
    const Matrix& first = of.matrix(0);
    const int64_t heads = of.members(0);
    for (int64_t h = 0; h < heads; ++h) {
        const Matrix& matrix = of.matrix(0, h);
        require_consistent(matrix.rows == first.rows && matrix.cols == first.cols &&
                               matrix.format == first.format && matrix.integer == first.integer,
                           "the matrices of all heads must have the same shape and format");
        heads_.push_back(matrix);
    }
    require_consistent(of.input_width(0) == heads * first.cols && of.output_width(0) == heads * first.rows,
                       "the matrices of heads must have the widths of their input and output");
}

// Lists the conversions and products of a step.
void HeadLinearCall::arrange(int64_t rows) {
    const auto count = static_cast<int64_t>(heads_.size());
    const bool floats = form_.form.kind == InputKind::kFloat;
    converts_.clear();
    parts_.clear();
    targets_.clear();
    targets_.reserve(heads_.size());
    int64_t terms = 0;
    for (int64_t h = 0; h < count; ++h) {
        const int64_t first = h * rows;
        for (int64_t r = 0; r < rows; ++r) {
            rows_.to_heads[first + r] = static_cast<int32_t>(r * count + h);
            rows_.from_heads[r * count + h] = static_cast<int32_t>(first + r);
        }
        const ConvertedRows converted = form_.from(converted_, first, terms);
        if (form_.form.kind == InputKind::kBf16Terms) terms += TermLayout{rows, form_.cols}.numbers();
        if (!floats)
            converts_.push_back({x_, rows, form_.cols, form_.form, converted, rows_.to_heads + first});
        const Matrix& matrix = heads_[static_cast<size_t>(h)];
        float* outputs = rows == 1 ? out_ : rows_.outputs;
        targets_.push_back({matrix, nullptr, outputs + first * matrix.rows});
        const float* inputs = rows == 1 ? x_ : rows_.inputs;
        parts_.push_back({floats ? inputs + first * form_.cols : nullptr, rows, form_.cols, &targets_.back(),
                          1, converted, unpacked_});
    }
}

void HeadLinearCall::run(int64_t rows, const Kernels& kernels, Crew& crew) {
    crew.run_once([&] { arrange(rows); });
    const auto count = static_cast<int64_t>(heads_.size());
    const bool floats = form_.form.kind == InputKind::kFloat;
    if (!floats)
        crew.run_small(kernels.convert_batch,
                       ConvertBatchArgs{converts_.data(), static_cast<int64_t>(converts_.size())});
    else if (rows > 1)
        crew.run_small(kernels.gather,
                       GatherArgs{x_, form_.cols, rows_.to_heads, rows * count, rows_.inputs});
    crew.share(kernels.linear_batch, LinearBatchArgs{parts_.data(), static_cast<int64_t>(parts_.size())});
    if (rows > 1)
        crew.run_small(kernels.gather,
                       GatherArgs{rows_.outputs, heads_.front().rows, rows_.from_heads, rows * count, out_});
}

}  // namespace llmd
