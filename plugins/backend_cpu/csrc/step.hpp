// The arrays of a step, and the checks that keep kernels inside their buffers.

#pragma once

#include <vector>

#include "kernels.hpp"
#include "program.hpp"

namespace llmd {

struct StageLimits {
    int64_t max_rows;
    int64_t max_sequences;
    int64_t max_outputs;
    int64_t num_candidates;
    KvDtype kv_dtype;
};

struct BlockTable {
    const int32_t* blocks;  // [sequences, width]
    int64_t width;
};

struct Step {
    // Fills in what attention needs of the step: its rows and the blocks of their sequences.
    void place(AttentionArgs& args, const BlockTable& table) const {
        args.tokens = positions;
        args.row_offsets = row_offsets;
        args.rows = rows;
        args.sequences = sequences;
        args.block_table = table.blocks;
        args.table_width = table.width;
    }

    int64_t rows;
    int64_t sequences;
    const int32_t* token_ids;  // with `feed` already resolved
    const int32_t* positions;
    const int32_t* row_offsets;
    std::vector<BlockTable> tables;  // one per group
    int64_t num_copies;
    const int32_t* copies;       // [copies, 3]: group, source, target
    const int32_t* token_types;  // null: 0 everywhere
    const int32_t* adapters;     // [sequences], -1: none; null: none everywhere
};

// These throw std::invalid_argument that names the array, the index and the value. `blocks[g]` is the size
// of the pool of group g; groups without layers in this program have no pool and are skipped.
void check_rows(const Step& step, const StageLimits& limits, int64_t context_len);
void check_blocks(const Step& step, const Program& program, const std::vector<int64_t>& blocks);
void check_tokens(const Step& step, int64_t vocab_size);
void check_token_types(const Step& step, int64_t num_token_types);
// A program without adapters ignores those of a step.
void check_adapters(const Step& step, int64_t num_adapters);
void check_selection(const Selection& selection, int64_t edits, const Step& step, const StageLimits& limits,
                     int64_t vocab_size);

}  // namespace llmd
