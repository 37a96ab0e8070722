// Products with a matrix for each head, bound to the buffers of a stage.
//
// The rows of one head are a matrix product. With several rows in a step, `gather` puts those of each head
// together before the products and brings them back after them: a row has the same bits as alone.

#pragma once

#include <vector>

#include "converted_rows.hpp"
#include "crew.hpp"
#include "weights.hpp"

namespace llmd {

struct StageLimits;
struct Bindings;
class Operands;

// Buffers that all such ops of a stage share.
struct HeadRows {
    float* inputs;        // [heads, rows, in]
    float* outputs;       // [heads, rows, out]
    int32_t* to_heads;    // [heads, rows]: the slice in a value [rows, heads]
    int32_t* from_heads;  // [rows, heads]: the reverse
};

// Elements of these buffers for the largest such op of a program.
struct HeadSizes {
    int64_t slices = 0;  // rows times heads
    int64_t inputs = 0;
    int64_t outputs = 0;
};
HeadSizes head_sizes(const Weights& weights, const StageLimits& limits);

class HeadLinearCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    HeadLinearCall(const Operands& of, const Bindings& to);

    // Runs on all threads of a job.
    void run(int64_t rows, const Kernels& kernels, Crew& crew);

  private:
    void arrange(int64_t rows);

    const float* x_;
    float* out_;
    std::vector<Matrix> heads_;
    RowForm form_;
    HeadRows rows_;
    ConvertedRows converted_;
    float* unpacked_;
    // Those of one step.
    std::vector<ConvertArgs> converts_;
    std::vector<LinearArgs> parts_;
    std::vector<LinearTarget> targets_;
};

}  // namespace llmd
