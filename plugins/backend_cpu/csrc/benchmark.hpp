// Measures what a machine's memory and kernels can do.

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

// Takes about `budget_s` seconds. Reads, one-row linear ops and 256-row linear ops take turns over the same
// memory, slice by slice; each rate is the median of its turns, prefill that of the fastest format.
Rates measure(ThreadPool& pool, const Kernels& kernels, double budget_s);

}  // namespace llmd
