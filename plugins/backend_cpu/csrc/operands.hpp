// The operands of one op, as a stage has them.

#pragma once

#include <stdexcept>
#include <string>

#include "calls.hpp"

namespace llmd {

// Throws std::invalid_argument unless it holds.
inline void require_consistent(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("the program is inconsistent: ") + what);
}

// Reads the operands of one op.
class Operands {
  public:
    Operands(const Op& op, const Bindings& to) : op_(op), to_(to) {}

    float* input(size_t i) const { return slot(op_.inputs.at(i)); }
    float* output(size_t i) const { return slot(op_.outputs.at(i)); }
    size_t num_inputs() const { return op_.inputs.size(); }
    size_t num_outputs() const { return op_.outputs.size(); }
    int64_t input_width(size_t i) const { return width(op_.inputs.at(i)); }
    int64_t output_width(size_t i) const { return width(op_.outputs.at(i)); }
    const Matrix& matrix(size_t i, int64_t member = 0) const {
        return to_.weights.matrix(op_.weights.at(i), member);
    }
    int64_t weight(size_t i) const { return op_.weights.at(i); }
    bool has_weight(size_t i) const { return op_.weights.at(i) >= 0; }
    int64_t members(size_t i) const { return to_.weights.members(op_.weights.at(i)); }
    const float* vector(size_t i, int64_t count) const {
        return to_.weights.vector(op_.weights.at(i), count);
    }
    int64_t integer(size_t i) const { return op_.ints.at(i); }
    const std::vector<int64_t>& integers() const { return op_.ints; }
    float number(size_t i) const { return static_cast<float>(op_.floats.at(i)); }

  private:
    float* slot(int64_t index) const { return to_.slots.at(static_cast<size_t>(index)); }
    int64_t width(int64_t index) const {
        return to_.weights.program.slot_widths.at(static_cast<size_t>(index));
    }

    const Op& op_;
    const Bindings& to_;
};

// The activation of an op, which is its first integer.
Activation activation_of(const Operands& of);

// Converts activations to the form that a weight needs.
ConvertArgs bind_convert(const float* x, const Matrix& weight, const Bindings& to);

// Memory for a panel of weights as float32, if activations stay float32; else null.
float* memory_for_unpacked(const InputForm& form, const Bindings& to);

}  // namespace llmd
