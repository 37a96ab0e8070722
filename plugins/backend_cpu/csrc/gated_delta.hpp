// Layers with the gated delta rule, bound to the buffers of a stage.

#pragma once

#include <vector>

#include "delta_args.hpp"
#include "weights.hpp"

namespace llmd {

struct StageLimits;
struct Bindings;
class Operands;

// Floats of the `DeltaRows` of the largest such layer of a program.
struct DeltaSizes {
    int64_t mixed = 0;
    int64_t decays = 0;
    int64_t shares = 0;
};
DeltaSizes delta_sizes(const Program& program, const StageLimits& limits);

// `args` lacks the fields that change with every step.
struct DeltaCall {
    size_t group;
    DeltaArgs args;

    // Throws std::invalid_argument if the operands contradict each other.
    DeltaCall(const Operands& of, const Bindings& to);
    DeltaCall(const DeltaCall&) = delete;
    DeltaCall& operator=(const DeltaCall&) = delete;

  private:
    std::vector<float> taps_;  // [taps, width]
    std::vector<float> rates_;
};

}  // namespace llmd
