#include "encoder_scratch.hpp"

#include <algorithm>

#include "kv_layout.hpp"

namespace llmd {

namespace {

int64_t num_blocks(int64_t rows) { return (rows + kBlockLen - 1) / kBlockLen; }

int64_t sequence_rows(const Step& step, int64_t sequence) {
    return step.row_offsets[sequence + 1] - step.row_offsets[sequence];
}

}  // namespace

EncoderScratch::EncoderScratch(const Program& program, const StageLimits& limits) {
    int64_t block_bytes = 0;
    for (const Op& op : program.ops) {
        if (op.kind != OpKind::kEncoderAttention) continue;
        const KvLayout layout{KvDtype::kF32, op.ints.at(0), op.ints.at(1)};
        block_bytes = std::max(block_bytes, layout.block_bytes());
    }
    const int64_t blocks =
        // Each sequence may end in a partly filled block.
        limits.max_rows / kBlockLen + limits.max_sequences;
    memory_ = Buffer(static_cast<size_t>(blocks * block_bytes));
}

void EncoderScratch::arrange(const Step& step) {
    if (memory_.size() == 0) return;
    width_ = 0;
    for (int64_t s = 0; s < step.sequences; ++s) {
        width_ = std::max(width_, num_blocks(sequence_rows(step, s)));
    }
    table_.resize(static_cast<size_t>(step.sequences * width_));
    positions_.resize(static_cast<size_t>(step.rows));
    int32_t block = 0;
    for (int64_t s = 0; s < step.sequences; ++s) {
        const int64_t rows = sequence_rows(step, s);
        for (int64_t i = 0; i < num_blocks(rows); ++i) table_[static_cast<size_t>(s * width_ + i)] = block++;
        for (int64_t i = 0; i < rows; ++i) {
            positions_[static_cast<size_t>(step.row_offsets[s] + i)] = static_cast<int32_t>(i);
        }
    }
}

}  // namespace llmd
