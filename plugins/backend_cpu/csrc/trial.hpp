// Compares ways to place threads on the processors of a machine, in a fraction of a second.

#pragma once

#include <vector>

#include "kernels.hpp"

namespace llmd {

// A number of threads and the processors that they are pinned to (empty: not pinned); see ThreadPool.
struct Placement {
    int threads;
    std::vector<int> processors;
};

struct TrialRates {
    double decode_bytes_per_s = 0.0;
    double prefill_flops_per_s = 0.0;
};

// Takes about `budget_s` seconds, or one round if that takes longer. In each round every placement
// multiplies bf16 matrices of realistic size, with a barrier after each: first by one row, then by many.
// The rate of a placement is the best of its rounds, because other programs can only slow it down. At most
// a third of the budget is spent on filling the matrices, `num_bytes` in total: a machine with slow writes
// compares with fewer of them.
std::vector<TrialRates> compare(const std::vector<Placement>& placements, const Kernels& kernels, int spin_us,
                                int64_t num_bytes, double budget_s);

}  // namespace llmd
