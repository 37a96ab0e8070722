#include "elementwise.hpp"

namespace llmd {

Call bind_glu(const Operands& of) {
    const int64_t width = of.output_width(0);
    require_consistent(of.input_width(0) == width && of.input_width(1) == width,
                       "gate, up and output must have the same width");
    const float limit = of.number(1) > 0.0F ? of.number(1) : __builtin_inff();
    return GluArgs{of.input(0), of.input(1), of.output(0), width, activation_of(of), of.number(0), limit};
}

Call bind_activate(const Operands& of) {
    require_consistent(of.input_width(0) == of.output_width(0),
                       "the input and output of an activation must have the same width");
    return ActivateArgs{of.input(0), of.output(0), of.output_width(0), activation_of(of)};
}

Call bind_add(const Operands& of) {
    const int64_t width = of.output_width(0);
    require_consistent(of.input_width(0) == width && of.input_width(1) == width,
                       "the operands and the output of an addition must have the same width");
    return AddArgs{of.input(0), of.input(1), of.output(0), width, of.number(0)};
}

Call bind_multiply(const Operands& of) {
    require_consistent(of.input_width(0) == of.output_width(0),
                       "the input and output of a multiplication must have the same width");
    require_consistent(of.has_weight(0), "a multiplication must have a factor");
    return MultiplyArgs{of.input(0), of.vector(0, 1), of.output(0), of.output_width(0)};
}

Call bind_gate(const Operands& of) {
    const int64_t width = of.output_width(0);
    const int64_t slices = of.input_width(1);
    require_consistent(of.input_width(0) == width, "the input and output of a gate must have the same width");
    require_consistent(slices > 0 && width % slices == 0, "gates must divide their input evenly");
    return GateArgs{of.input(0), of.input(1), of.output(0), 0, width, slices};
}

Call bind_join(const Operands& of) {
    const int64_t heads = of.integer(0);
    const int64_t first = of.input_width(0);
    const int64_t second = of.input_width(1);
    require_consistent(heads > 0 && first % heads == 0 && second % heads == 0,
                       "the heads of joined values must divide both evenly");
    require_consistent(of.output_width(0) == first + second, "joined values must add up to the output");
    return JoinArgs{of.input(0), of.input(1), of.output(0), 0, heads, first / heads, second / heads};
}

}  // namespace llmd
