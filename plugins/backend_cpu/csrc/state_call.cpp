#include "state_call.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calls.hpp"
#include "operands.hpp"
#include "time_mix_calls.hpp"

namespace llmd {

namespace {

constexpr size_t kInputs = 3;     // q, k and v
constexpr size_t kTapsBias = 6;   // the first weight of those that are added to convolutions
constexpr size_t kRates = 3;      // the weight with the rates; biases and skips follow
constexpr size_t kShapeInts = 7;  // integers of both kinds of ops

bool keeps_matrices(OpKind kind) {
    return kind == OpKind::kGatedDelta || kind == OpKind::kStateSpace || kind == OpKind::kGeneralizedDelta;
}

StateShape shape_of(OpKind kind, const std::vector<int64_t>& ints) {
    if (kind == OpKind::kGeneralizedDelta) return generalized_shape(ints);
    const bool is_delta = kind == OpKind::kGatedDelta;
    return {ints.at(2),
            ints.at(3),
            ints.at(4),
            ints.at(5),
            ints.at(6),
            is_delta && ints.at(kShapeInts) != 0,
            is_delta && ints.at(kShapeInts + 1) != 0};
}

}  // namespace

StateSizes state_sizes(const Program& program, const StageLimits& limits) {
    StateSizes most;
    for (const Op& op : program.ops) {
        if (!keeps_matrices(op.kind)) continue;
        const StateShape shape = shape_of(op.kind, op.ints);
        most.mixed = std::max(most.mixed, limits.max_rows * shape.width());
        most.decays = std::max(most.decays, limits.max_rows * shape.decay_width());
        most.shares = std::max(most.shares, limits.max_rows * shape.heads);
    }
    return most;
}

StateCall::StateCall(OpKind kind, const Operands& of, const Bindings& to)
    : kind_(kind), group_(static_cast<size_t>(of.integer(0))), args_{} {
    const KvGroup& group_of = to.weights.program.groups.at(group_);
    const StateShape& shape = args_.shape = shape_of(kind, of.integers());
    require_consistent(shape.key_heads > 0 && shape.heads > 0 && shape.heads % shape.key_heads == 0,
                       "the heads of keys must divide those of states");
    require_consistent(shape.key_dim > 0 && shape.value_dim > 0 && shape.taps > 0,
                       "keys, values and convolutions must have a size");
    require_consistent(group_of.state_bytes == shape.state() * static_cast<int64_t>(sizeof(float)),
                       "a layer with states must have the size of its KV group");
    require_consistent(of.integer(1) >= 0 && of.integer(1) < group_of.layers,
                       "a layer with states must be in its KV group");
    require_consistent(of.input_width(3) == shape.decay_width() && of.output_width(0) == shape.value_width(),
                       "decays and the output of a layer with states must fit its heads");
    bind_rows(of);
    bind_decays(of);
    bind_rule(of);
    args_.out = of.output(0);
    args_.rows_of = to.state_rows;
    args_.pool = static_cast<float*>(to.pools.layer(of.integer(0), of.integer(1)));
    args_.stride = shape.state();
}

void StateCall::run(const Step& step, const Kernels& kernels, Crew& crew) const {
    StateArgs args = args_;
    args.rows = step.rows;
    args.sequences = step.sequences;
    args.row_offsets = step.row_offsets;
    args.slots = step.tables[group_].blocks;
    const bool is_delta = kind_ == OpKind::kGatedDelta;
    crew.run_small(is_delta ? kernels.delta_rows : kernels.space_rows, args);
    crew.share(is_delta ? kernels.delta_states : kernels.space_states, args);
}

// Binds queries, keys and values, and the tensors that convolve them.
void StateCall::bind_rows(const Operands& of) {
    const StateShape& shape = args_.shape;
    const bool has_bias = kind_ == OpKind::kStateSpace && of.has_weight(kTapsBias);
    const int64_t widths[kInputs] = {shape.key_width(), shape.key_width(), shape.value_width()};
    taps_.resize(static_cast<size_t>(shape.taps * shape.width()));
    int64_t first = 0;
    for (size_t i = 0; i < kInputs; first += widths[i++]) {
        require_consistent(of.input_width(i) == widths[i],
                           "the heads of a layer with states must add up to its queries, keys and values");
        args_.inputs[i] = of.input(i);
        const float* stored = of.vector(i, widths[i] * shape.taps);
        for (int64_t column = 0; column < widths[i]; ++column) {
            for (int64_t tap = 0; tap < shape.taps; ++tap)
                taps_[static_cast<size_t>(tap * shape.width() + first + column)] =
                    stored[column * shape.taps + tap];
        }
        if (!has_bias) continue;
        const float* bias = of.vector(kTapsBias + i, widths[i]);
        taps_bias_.insert(taps_bias_.end(), bias, bias + widths[i]);
    }
    args_.taps = taps_.data();
    args_.taps_bias = has_bias ? taps_bias_.data() : nullptr;
}

void StateCall::bind_decays(const Operands& of) {
    const StateShape& shape = args_.shape;
    const float* stored = of.vector(kRates, shape.heads);
    const bool is_log = of.integers().back() == 0;
    for (int64_t head = 0; head < shape.heads; ++head)
        rates_.push_back(is_log ? std::exp(stored[head]) : -stored[head]);
    args_.decay = of.input(3);
    args_.rates = rates_.data();
    args_.bias = of.vector(kRates + 1, shape.decay_width());
}

void StateCall::bind_rule(const Operands& of) {
    if (kind_ == OpKind::kStateSpace) {
        args_.skips = of.vector(kRates + 2, args_.shape.heads);
        args_.least_time = of.number(0);
        args_.most_time = of.number(1) > 0 ? of.number(1) : std::numeric_limits<float>::infinity();
        return;
    }
    require_consistent(of.input_width(4) == args_.shape.heads,
                       "the gated delta rule must have a share for each head");
    args_.beta = of.input(4);
}

}  // namespace llmd
