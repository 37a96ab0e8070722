#include "gated_delta.hpp"

#include <algorithm>
#include <cmath>

#include "calls.hpp"
#include "operands.hpp"

namespace llmd {

namespace {

constexpr size_t kInputs = 3;  // q, k and v

DeltaShape shape_of(const std::vector<int64_t>& ints) {
    return {ints.at(2), ints.at(3), ints.at(4), ints.at(5), ints.at(6), ints.at(7) != 0, ints.at(8) != 0};
}

}  // namespace

DeltaSizes delta_sizes(const Program& program, const StageLimits& limits) {
    DeltaSizes most;
    for (const Op& op : program.ops) {
        if (op.kind != OpKind::kGatedDelta) continue;
        const DeltaShape shape = shape_of(op.ints);
        most.mixed = std::max(most.mixed, limits.max_rows * shape.width());
        most.decays = std::max(most.decays, limits.max_rows * shape.decay_width());
        most.shares = std::max(most.shares, limits.max_rows * shape.heads);
    }
    return most;
}

DeltaCall::DeltaCall(const Operands& of, const Bindings& to)
    : group(static_cast<size_t>(of.integer(0))), args{} {
    const KvGroup& group_of = to.weights.program.groups.at(group);
    const DeltaShape& shape = args.shape = shape_of(of.integers());
    require_consistent(shape.key_heads > 0 && shape.heads > 0 && shape.heads % shape.key_heads == 0,
                       "the heads of keys must divide those of states");
    require_consistent(shape.key_dim > 0 && shape.value_dim > 0 && shape.taps > 0,
                       "keys, values and convolutions must have a size");
    require_consistent(group_of.state_bytes == shape.state() * static_cast<int64_t>(sizeof(float)),
                       "a layer with states must have the size of its KV group");
    require_consistent(of.integer(1) >= 0 && of.integer(1) < group_of.layers,
                       "a layer with states must be in its KV group");
    const int64_t widths[kInputs] = {shape.key_width(), shape.key_width(), shape.value_width()};
    taps_.resize(static_cast<size_t>(shape.taps * shape.width()));
    int64_t first = 0;
    for (size_t i = 0; i < kInputs; first += widths[i++]) {
        require_consistent(of.input_width(i) == widths[i],
                           "the heads of a layer with states must add up to its queries, keys and values");
        args.inputs[i] = of.input(i);
        const float* stored = of.vector(i, widths[i] * shape.taps);
        for (int64_t column = 0; column < widths[i]; ++column) {
            for (int64_t tap = 0; tap < shape.taps; ++tap)
                taps_[static_cast<size_t>(tap * shape.width() + first + column)] =
                    stored[column * shape.taps + tap];
        }
    }
    require_consistent(of.input_width(3) == shape.decay_width() && of.input_width(4) == shape.heads &&
                           of.output_width(0) == shape.value_width(),
                       "decays, shares and the output of a layer with states must fit its heads");
    const float* stored = of.vector(3, shape.heads);
    const bool is_log = of.integer(9) == 0;
    for (int64_t head = 0; head < shape.heads; ++head)
        rates_.push_back(is_log ? std::exp(stored[head]) : -stored[head]);
    args.decay = of.input(3);
    args.beta = of.input(4);
    args.out = of.output(0);
    args.taps = taps_.data();
    args.rates = rates_.data();
    args.bias = of.vector(4, shape.decay_width());
    args.rows_of = to.delta_rows;
    args.pool = static_cast<float*>(to.pools.layer(of.integer(0), of.integer(1)));
}

}  // namespace llmd
