// An op that applies adapters, bound to the buffers of a stage; see llmd.api.adapter_ops.Adapt.
//
// The rows of a step are grouped by adapter, so that each step reads the matrices of an adapter once for all
// rows that have it, and those of other adapters not at all.

#pragma once

#include <vector>

#include "crew.hpp"
#include "kernels.hpp"
#include "step.hpp"
#include "weights.hpp"

namespace llmd {

struct Bindings;
class Operands;

// Floats of the largest product `x a^T` of all adapters of an op, for all rows of a step.
int64_t adapter_middle(const Weights& weights, const StageLimits& limits);
// The number of adapters of the program; 0 if no op has any.
int64_t num_adapters(const Program& program);

class AdaptCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    AdaptCall(const Operands& of, const Bindings& to);

    // Runs on all threads of a job.
    void run(const Step& step, const Kernels& kernels, Crew& crew);

  private:
    struct Product {
        Matrix a;
        Matrix b;  // turned: [rank, outputs]
        float scale;
        bool exists;  // else the adapter leaves the output as it is
    };
    struct Output {
        const float* value;
        float* out;
        int64_t width;
        int64_t rank;                   // the highest
        std::vector<Product> products;  // of each adapter
    };

    Matrix turned(const Matrix& matrix);
    void arrange(const Step& step);
    void add_parts(const Step& step, int32_t adapter);
    void add_part(const Output& output, float* middle, size_t adapter, size_t first_run);

    const float* x_;
    int64_t cols_;
    float* middle_;
    int64_t max_rows_;
    std::vector<Output> outputs_;
    std::vector<std::vector<uint8_t>> turned_;  // the elements of turned matrices
    // Those of one step.
    std::vector<Run> runs_;
    std::vector<AdapterPart> parts_;
};

}  // namespace llmd
