#include "time_mix_calls.hpp"

#include "calls.hpp"
#include "operands.hpp"

namespace llmd {

namespace {

constexpr size_t kReads = 5;  // r, k, v, decay and a
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// A part of the states of a layer, all in floats.
struct StatePart {
    float* first;
    int64_t stride;
};

// The part of an op whose integers begin with group and layer.
StatePart part_of(const Operands& of, const Bindings& to, int64_t offset, int64_t size) {
    const KvGroup& group = to.weights.program.groups.at(static_cast<size_t>(of.integer(0)));
    require_consistent(of.integer(1) >= 0 && of.integer(1) < group.layers,
                       "a layer with states must be in its KV group");
    require_consistent(offset >= 0 && kFloatBytes * (offset + size) <= group.state_bytes,
                       "the state of an op must be within that of its layer");
    auto* pool = static_cast<float*>(to.pools.layer(of.integer(0), of.integer(1)));
    return {pool + offset, group.state_bytes / kFloatBytes};
}

}  // namespace

StateShape generalized_shape(const std::vector<int64_t>& ints) {
    const int64_t heads = ints.at(2);
    const int64_t dim = ints.at(3);
    return {heads, heads, dim, dim, 1, true, false};
}

TokenShiftCall::TokenShiftCall(const Operands& of, const Bindings& to)
    : group_(static_cast<size_t>(of.integer(0))), args_{} {
    args_.x = of.input(0);
    args_.width = of.input_width(0);
    args_.count = static_cast<int64_t>(of.num_outputs());
    require_consistent(args_.count <= ShiftArgs::kMost, "a row must be mixed in at most 8 ways");
    for (size_t i = 0; i < of.num_outputs(); ++i) {
        require_consistent(of.output_width(i) == args_.width, "mixed rows must be as wide as rows");
        args_.outs[i] = of.output(i);
        args_.shares[i] = of.vector(i, args_.width);
    }
    const StatePart part = part_of(of, to, of.integer(2), args_.width);
    args_.pool = part.first;
    args_.stride = part.stride;
}

void TokenShiftCall::run(const Step& step, const Kernels& kernels, Crew& crew) const {
    ShiftArgs args = args_;
    args.sequences = step.sequences;
    args.row_offsets = step.row_offsets;
    args.slots = step.tables[group_].blocks;
    crew.run_small(kernels.token_shift, args);
}

GeneralizedDeltaCall::GeneralizedDeltaCall(const Operands& of, const Bindings& to)
    : group_(static_cast<size_t>(of.integer(0))), args_{} {
    const StateShape& shape = args_.shape = generalized_shape(of.integers());
    require_consistent(shape.heads > 0 && shape.key_dim > 0, "the heads of states must have a size");
    const int64_t width = shape.key_width();
    for (size_t i = 0; i < kReads; ++i)
        require_consistent(of.input_width(i) == width,
                           "the heads of states must add up to what a row writes");
    require_consistent(of.output_width(0) == width && of.output_width(1) == width,
                       "the heads of states must add up to what a row reads");
    for (size_t i = 0; i < 3; ++i) args_.inputs[i] = of.input(i);
    args_.decay = of.input(3);
    args_.beta = of.input(4);
    args_.out = of.output(0);
    args_.bonus = of.output(1);
    args_.removal = of.vector(0, width);
    args_.mixing = of.vector(1, width);
    args_.bonuses = of.vector(2, width);
    args_.rows_of = to.state_rows;
    const StatePart part = part_of(of, to, of.integer(4), shape.state());
    args_.pool = part.first;
    args_.stride = part.stride;
}

void GeneralizedDeltaCall::run(const Step& step, const Kernels& kernels, Crew& crew) const {
    StateArgs args = args_;
    args.rows = step.rows;
    args.sequences = step.sequences;
    args.row_offsets = step.row_offsets;
    args.slots = step.tables[group_].blocks;
    crew.run_small(kernels.wkv_rows, args);
    crew.share(kernels.wkv_states, args);
}

}  // namespace llmd
