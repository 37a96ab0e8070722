// Cosines and sines for the positions of a step, computed once for all layers that share a table.

#pragma once

#include "buffer.hpp"
#include "program.hpp"
#include "thread_pool.hpp"

namespace llmd {

class RopeAngles {
  public:
    // Rows of the tokens `stride * i .. stride * (i + 1) - 1` have the angles of the first of them.
    RopeAngles(const RopeTable& table, int64_t stride, int64_t max_rows);

    bool is_for(const RopeTable& table, int64_t stride) const {
        return &table == &table_ && stride == stride_;
    }

    // Computes angles in float64, then scales sines and cosines by the table's factor and rounds them
    // once. The threads of the job share the rows.
    void compute(const int32_t* positions, int64_t rows, Worker& worker);

    int64_t half() const { return static_cast<int64_t>(table_.inv_freq.size()); }
    const float* cosines() const { return memory_.as<float>(); }
    const float* sines() const { return memory_.as<float>() + max_rows_ * half(); }

  private:
    const RopeTable& table_;
    int64_t stride_;
    int64_t max_rows_;
    Buffer memory_;
};

}  // namespace llmd
