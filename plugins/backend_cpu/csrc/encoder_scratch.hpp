// Keys and values of encoder attention. The blocks hold one layer of one step; all layers reuse them.

#pragma once

#include <vector>

#include "buffer.hpp"
#include "step.hpp"

namespace llmd {

class EncoderScratch {
  public:
    // Takes no memory if the program has no encoder attention.
    EncoderScratch(const Program& program, const StageLimits& limits);

    // Assigns consecutive blocks to the sequences of a step.
    void arrange(const Step& step);

    void* blocks() const { return memory_.as<void>(); }
    BlockTable table() const { return {table_.data(), width_}; }
    // The index of each row within its sequence, regardless of its position in the text.
    const int32_t* positions() const { return positions_.data(); }

  private:
    Buffer memory_;
    std::vector<int32_t> positions_;
    std::vector<int32_t> table_;  // [sequences, width]
    int64_t width_ = 0;
};

}  // namespace llmd
