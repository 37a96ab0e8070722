// Mixtures of experts: groups the rows of a step by expert, so that each expert is read once.

#pragma once

#include <vector>

#include "converted_rows.hpp"
#include "crew.hpp"
#include "kernels.hpp"
#include "weights.hpp"

namespace llmd {

struct StageLimits;
struct Bindings;
class Operands;

constexpr int64_t kMostRouterGroups = 64;

// Buffers that all mixtures of a stage share. An *assigned row* is a row for one of its experts; those of an
// expert are consecutive.
struct ExpertRows {
    float* inputs;         // [assigned rows, hidden]
    float* gate;           // [assigned rows, inner]
    float* up;             // [assigned rows, inner]
    float* outputs;        // [assigned rows, hidden]
    int32_t* row_numbers;  // [assigned rows]: the row of the step
    int32_t* counts;       // [rows]: experts of a row
    int32_t* places;       // [rows, top_k]: the assigned rows of a row, in ascending order of experts
    float* weights;        // [rows, top_k]
};

// Elements of these buffers for the largest mixture of a program.
struct ExpertSizes {
    int64_t rows = 0;      // assigned
    int64_t hidden = 0;    // assigned rows times width
    int64_t inner = 0;     // assigned rows times width
    int64_t products = 0;  // of a router
};
ExpertSizes expert_sizes(const Weights& weights, const StageLimits& limits);

class ExpertsCall {
  public:
    // Throws std::invalid_argument if the operands contradict each other.
    ExpertsCall(const Operands& of, const Bindings& to);

    // Runs on all threads of a job, if all experts are in memory.
    void run(int64_t rows, const Kernels& kernels, Crew& crew);
    // Otherwise: runs outside of jobs, and reads the experts that are missing. Those for which there is no
    // room at the same time are multiplied one after the other.
    bool is_cached() const { return cached_ != nullptr; }
    void run_cached(int64_t rows, const Kernels& kernels, ThreadPool& pool);

  private:
    // Matrices of every expert, and where their outputs go.
    struct Product {
        const Matrix* experts;
        const float* biases;  // [experts, rows of a matrix], or null
        float* out;           // [assigned rows, rows of a matrix]
    };
    // Products that take their input in the same form. The lists after `form` are those of one step.
    struct Pass {
        std::vector<Product> products;
        const float* x;
        bool gathers;  // x has the rows of the step; else the assigned rows
        int64_t cols;
        InputForm form;
        std::vector<ConvertArgs> converts;
        std::vector<LinearArgs> parts;
        std::vector<LinearTarget> targets;
    };

    void add_product(std::vector<Pass>& passes, const Operands& of, const Bindings& to, size_t weight,
                     const float* x, bool gathers, float* out, int64_t cols);
    void assign(int64_t rows);
    void arrange(int64_t first_expert, int64_t last_expert);
    void arrange(Pass& pass, int64_t first_expert, int64_t last_expert);
    void multiply_all(const Kernels& kernels, Crew& crew) const;
    void multiply(const Pass& pass, const Kernels& kernels, Crew& crew) const;
    void activate(const Kernels& kernels, Crew& crew) const;
    void add_up(const Kernels& kernels, Crew& crew) const;

    const float* routes_;
    float* out_;
    int64_t num_experts_;
    int64_t hidden_;
    int64_t inner_;
    int64_t top_k_;
    bool gated_;
    ExpertGateArgs gate_;
    ExpertRows rows_;
    ConvertedRows converted_;
    float* unpacked_;
    std::vector<Pass> inputs_;
    std::vector<Pass> down_;
    ExpertCache* cache_;
    ExpertCache::Experts* cached_;  // null: all experts are in memory
    int64_t step_rows_ = 0;
    // Assigned rows of the experts that are multiplied now.
    int64_t first_row_ = 0;
    int64_t num_rows_ = 0;
    std::vector<int32_t> firsts_;  // [experts + 1]: the first assigned row of each expert
    std::vector<int32_t> next_;    // [experts]
};

}  // namespace llmd
