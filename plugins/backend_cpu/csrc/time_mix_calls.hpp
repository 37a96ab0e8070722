// The ops of RWKV-7, bound to the buffers of a stage. Their states are parts of one state of a layer.

#pragma once

#include <vector>

#include "state_args.hpp"
#include "weights.hpp"

namespace llmd {

class Crew;
struct Kernels;
struct Step;
struct Bindings;
class Operands;

// The shape of the states of a `generalized_delta` with these integers.
StateShape generalized_shape(const std::vector<int64_t>& ints);

class TokenShiftCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    TokenShiftCall(const Operands& of, const Bindings& to);

    void run(const Step& step, const Kernels& kernels, Crew& crew) const;

  private:
    size_t group_;
    ShiftArgs args_;  // without the fields that change with every step
};

class GeneralizedDeltaCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    GeneralizedDeltaCall(const Operands& of, const Bindings& to);

    void run(const Step& step, const Kernels& kernels, Crew& crew) const;

  private:
    size_t group_;
    StateArgs args_;  // without the fields that change with every step
};

}  // namespace llmd
