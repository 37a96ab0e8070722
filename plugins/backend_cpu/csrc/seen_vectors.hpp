// The last vector that each row of a step sees in KV groups with a stride, computed once for all layers.

#pragma once

#include "buffer.hpp"
#include "thread_pool.hpp"

namespace llmd {

class SeenVectors {
  public:
    SeenVectors(int64_t stride, int64_t max_rows)
        : stride_(stride), memory_(stride > 1 ? sizeof(int32_t) * static_cast<size_t>(max_rows) : 0) {}

    // The threads of the job share the rows.
    void compute(const int32_t* positions, int64_t rows, Worker& worker) {
        if (stride_ == 1) return;
        auto* seen = memory_.as<int32_t>();
        for (int64_t r; (r = worker.take(1)) < rows;)
            seen[r] = static_cast<int32_t>((positions[r] + 1) / stride_) - 1;
    }

    // Their numbers; -1 if a row sees none. If each token has a vector, null: those of `positions`.
    const int32_t* numbers() const { return stride_ > 1 ? memory_.as<int32_t>() : nullptr; }

  private:
    int64_t stride_;
    Buffer memory_;
};

}  // namespace llmd
