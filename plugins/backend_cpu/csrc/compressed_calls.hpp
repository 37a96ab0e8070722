// The ops of compressed attention and of hyper-connections, bound to the buffers of a stage.

#pragma once

#include "crew.hpp"
#include "kernels.hpp"
#include "step.hpp"
#include "weights.hpp"

namespace llmd {

struct Bindings;
class Operands;

class CompressCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    CompressCall(const Operands& of, const Bindings& to);

    // Runs on all threads of a job.
    void run(const Step& step, const Kernels& kernels, Crew& crew) const;

  private:
    size_t group_;
    CompressArgs args_{};
};

// A product without a bias, then the weights of streams.
struct StreamWeightsCall {
    Matrix weight;
    ConvertArgs convert;
    float* products;
    StreamWeightsArgs args;
};

// Both are for `StreamArgs`.
struct CollapseCall {
    StreamArgs args;
};
struct MixCall {
    StreamArgs args;
};

// Floats of the products of all stream weights, for one row.
int64_t stream_products(const Program& program);

MergeArgs bind_merge_attention(const Operands& of);
StreamWeightsCall bind_stream_weights(const Operands& of, const Bindings& to);
CollapseCall bind_collapse_streams(const Operands& of);
MixCall bind_mix_streams(const Operands& of);

}  // namespace llmd
