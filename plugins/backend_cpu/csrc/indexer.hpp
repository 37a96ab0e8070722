// The choice of the positions that attention is limited to, bound to the buffers of a stage.

#pragma once

#include "crew.hpp"
#include "seen_vectors.hpp"
#include "step.hpp"
#include "weights.hpp"

namespace llmd {

struct Bindings;
class Operands;

// Floats of the buffers that all indexers of a program share.
struct IndexerSizes {
    int64_t scratch = 0;    // per thread
    int64_t positions = 0;  // of a sequence
};
// `blocks` has the blocks of each KV group.
IndexerSizes indexer_sizes(const Weights& weights, const std::vector<int64_t>& blocks);

struct IndexerBuffers {
    float* scratch;
    float* scores;  // [threads, positions]
    IndexerSizes sizes;
};

class IndexerCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    IndexerCall(const Operands& of, const Bindings& to);

    // Runs on all threads of a job.
    void run(const Step& step, const Kernels& kernels, Crew& crew) const;

  private:
    size_t group_;
    const SeenVectors* seen_;
    IndexerArgs args_{};
};

}  // namespace llmd
