// Measures how fast this machine reads memory and runs the kernels.

#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "thread_pool.hpp"

namespace llmd {

struct Rates {
    double read_bytes_per_s;
    double decode_f32_bytes_per_s;
    double decode_bf16_bytes_per_s;
    double decode_q8_bytes_per_s;
    double decode_q4_bytes_per_s;
    double prefill_flops_per_s;
};

// Takes about `budget_s` seconds. Memory reads, one-row linear ops and 256-row linear ops alternate over
// the same memory, one slice after the other. Each rate is the median of its measurements; the prefill
// rate is that of the fastest format.
Rates measure(ThreadPool& pool, const Kernels& kernels, double budget_s);

}  // namespace llmd
