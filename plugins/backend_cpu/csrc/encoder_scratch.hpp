// Keys and values of encoder attention: blocks that hold those of one layer and one step, for all layers in
// turn.

#pragma once

#include <vector>

#include "buffer.hpp"
#include "step.hpp"

namespace llmd {

class EncoderScratch {
  public:
    // Without encoder attention in the program it takes no memory.
    EncoderScratch(const Program& program, const StageLimits& limits);

    // Gives the sequences of a step blocks one after the other.
    void arrange(const Step& step);

    void* blocks() const { return memory_.as<void>(); }
    BlockTable table() const { return {table_.data(), width_}; }
    // Of each row inside its sequence, whatever its place in the text.
    const int32_t* positions() const { return positions_.data(); }
    int64_t bytes() const { return static_cast<int64_t>(memory_.size()); }

  private:
    Buffer memory_;
    std::vector<int32_t> positions_;
    std::vector<int32_t> table_;  // [sequences, width]
    int64_t width_ = 0;
};

}  // namespace llmd
