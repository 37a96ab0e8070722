// Layers that keep a matrix for each head, bound to the buffers of a stage.

#pragma once

#include <vector>

#include "state_args.hpp"
#include "weights.hpp"

namespace llmd {

class Crew;
struct Kernels;
struct StageLimits;
struct Step;
struct Bindings;
class Operands;

// Floats of the `StateRows` of the largest such layer of a program.
struct StateSizes {
    int64_t mixed = 0;
    int64_t decays = 0;
    int64_t shares = 0;
};
StateSizes state_sizes(const Program& program, const StageLimits& limits);

// A `gated_delta` or a `state_space`.
class StateCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    StateCall(OpKind kind, const Operands& of, const Bindings& to);
    StateCall(const StateCall&) = delete;
    StateCall& operator=(const StateCall&) = delete;

    void run(const Step& step, const Kernels& kernels, Crew& crew) const;

  private:
    void bind_rows(const Operands& of);
    void bind_decays(const Operands& of);
    void bind_rule(const Operands& of);

    OpKind kind_;
    size_t group_;
    StateArgs args_;                // without the fields that change with every step
    std::vector<float> taps_;       // [taps, width]
    std::vector<float> taps_bias_;  // [width], or empty
    std::vector<float> rates_;
};

}  // namespace llmd
