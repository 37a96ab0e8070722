// Compares ways to place threads on the processors of a machine, in a fraction of a second.

#pragma once

#include <vector>

#include "kernels.hpp"

namespace llmd {

// Threads, and the processors that they stay on (empty: anywhere); see ThreadPool.
struct Placement {
    int threads;
    std::vector<int> processors;
};

struct TrialRates {
    double decode_bytes_per_s = 0.0;
    double prefill_flops_per_s = 0.0;
};

// Takes about `budget_s` seconds, and longer where one round does. In each round every placement multiplies
// by matrices in bf16, of the size that models have and with a barrier after each: first by one row, then by
// many. Rates are the best of its rounds, since other programs only ever take from them. At most a third of
// the budget goes into filling the matrices, of `num_bytes` together: a machine that writes slowly compares
// with fewer.
std::vector<TrialRates> compare(const std::vector<Placement>& placements, const Kernels& kernels, int spin_us,
                                int64_t num_bytes, double budget_s);

}  // namespace llmd
