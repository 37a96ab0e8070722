#include "step.hpp"

#include <stdexcept>
#include <string>

namespace llmd {

namespace {

void require(bool holds, const char* what, int64_t place, int64_t value) {
    if (holds) return;
    throw std::invalid_argument(std::string(what) + " (entry " + std::to_string(place) + " is " +
                                std::to_string(value) + ")");
}

void check_count(const char* what, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return;
    throw std::invalid_argument("the step has " + std::to_string(value) + " " + what +
                                ", the stage was made for " + std::to_string(least) + " to " +
                                std::to_string(most));
}

// Checks offsets that divide `end` items into `count` pieces of at least `least` items each.
void check_offsets(const char* name, const int32_t* offsets, int64_t count, int64_t end, int64_t least) {
    const std::string what = std::string(name) + " must rise from 0 to " + std::to_string(end);
    require(offsets[0] == 0, what.c_str(), 0, offsets[0]);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t piece = static_cast<int64_t>(offsets[i + 1]) - offsets[i];
        require(piece >= least && offsets[i + 1] <= end, what.c_str(), i + 1, offsets[i + 1]);
    }
    require(offsets[count] == end, what.c_str(), count, offsets[count]);
}

// Checks the blocks of the positions that the rows of one sequence read or write.
void check_table(const Step& step, int64_t sequence, const BlockTable& table, const KvGroup& group,
                 int64_t blocks) {
    const int64_t window = group.window;
    const int64_t block_tokens = group.block_tokens();
    const int64_t first_row = step.row_offsets[sequence];
    const int64_t last_row = step.row_offsets[sequence + 1] - 1;
    const int64_t oldest = window > 0 ? step.positions[first_row] - window + 1 : 0;
    const int64_t last = step.positions[last_row] / block_tokens;
    require(last < table.width, "block_tables are too narrow for positions", last_row,
            step.positions[last_row]);
    for (int64_t i = (oldest > 0 ? oldest : 0) / block_tokens; i <= last; ++i) {
        const int64_t block = table.blocks[sequence * table.width + i];
        require(block >= 0 && block < blocks, "block_tables name a block outside of the pool",
                sequence * table.width + i, block);
    }
}

// Checks the slots that a sequence reads, perhaps none, and writes.
void check_slots(int64_t sequence, const BlockTable& table, int64_t slots) {
    require(table.width == 2, "block_tables of states must have two slots for each sequence", sequence,
            table.width);
    const int32_t* named = table.blocks + 2 * sequence;
    require(named[0] >= -1 && named[0] < slots && named[1] >= 0 && named[1] < slots,
            "block_tables name a slot outside of the pool", 2 * sequence, named[1]);
}

}  // namespace

void check_rows(const Step& step, const StageLimits& limits, int64_t context_len) {
    check_count("rows", step.rows, 1, limits.max_rows);
    check_count("sequences", step.sequences, 1, limits.max_sequences);
    check_offsets("row_offsets", step.row_offsets, step.sequences, step.rows, 1);
    for (int64_t s = 0; s < step.sequences; ++s) {
        for (int64_t r = step.row_offsets[s]; r < step.row_offsets[s + 1]; ++r) {
            const bool first = r == step.row_offsets[s];
            require(step.positions[r] >= 0 && step.positions[r] < context_len,
                    "positions lie outside of the context window", r, step.positions[r]);
            require(first || step.positions[r] == step.positions[r - 1] + 1,
                    "positions must be consecutive within a sequence", r, step.positions[r]);
        }
    }
}

void check_blocks(const Step& step, const Program& program, const std::vector<int64_t>& blocks) {
    if (step.tables.size() != program.groups.size()) {
        throw std::invalid_argument("there are " + std::to_string(step.tables.size()) + " block_tables for " +
                                    std::to_string(program.groups.size()) + " KV groups");
    }
    for (size_t g = 0; g < blocks.size(); ++g) {
        if (program.groups[g].layers == 0) continue;
        for (int64_t s = 0; s < step.sequences; ++s) {
            if (program.groups[g].keeps_states())
                check_slots(s, step.tables[g], blocks[g]);
            else
                check_table(step, s, step.tables[g], program.groups[g], blocks[g]);
        }
    }
    for (int64_t i = 0; i < 3 * step.num_copies; i += 3) {
        const int64_t group = step.copies[i];
        require(group >= 0 && group < static_cast<int64_t>(blocks.size()), "copies name an unknown group", i,
                group);
        if (program.groups[static_cast<size_t>(group)].layers == 0) continue;
        for (int64_t j = i + 1; j < i + 3; ++j) {
            require(step.copies[j] >= 0 && step.copies[j] < blocks[static_cast<size_t>(group)],
                    "copies name a block outside of the pool", j, step.copies[j]);
        }
    }
}

void check_tokens(const Step& step, int64_t vocab_size) {
    for (int64_t r = 0; r < step.rows; ++r) {
        require(step.token_ids[r] >= 0 && step.token_ids[r] < vocab_size,
                "token_ids lie outside of the vocabulary", r, step.token_ids[r]);
    }
}

void check_token_types(const Step& step, int64_t num_token_types) {
    if (step.token_types == nullptr) return;
    for (int64_t r = 0; r < step.rows; ++r) {
        require(step.token_types[r] >= 0 && step.token_types[r] < num_token_types,
                "token_types lie outside of what the model tells apart", r, step.token_types[r]);
    }
}

void check_adapters(const Step& step, int64_t num_adapters) {
    if (step.adapters == nullptr || num_adapters == 0) return;
    for (int64_t s = 0; s < step.sequences; ++s) {
        require(step.adapters[s] >= -1 && step.adapters[s] < num_adapters,
                "adapters lie outside of those of the program", s, step.adapters[s]);
    }
}

void check_selection(const Selection& selection, int64_t edits, const Step& step, const StageLimits& limits,
                     int64_t vocab_size) {
    check_count("output rows", selection.rows, 0, limits.max_outputs);
    for (int64_t n = 0; n < selection.rows; ++n) {
        const int64_t row = selection.row_numbers[n];
        require(row < step.rows && row >= (n == 0 ? 0 : selection.row_numbers[n - 1]),
                "rows of the selection must be ascending rows of the step", n, row);
        require(selection.targets[n] >= -1 && selection.targets[n] < vocab_size,
                "targets lie outside of the vocabulary", n, selection.targets[n]);
        if (!(selection.temperatures[n] > 0.0F)) {
            throw std::invalid_argument("temperatures must be positive (entry " + std::to_string(n) + " is " +
                                        std::to_string(selection.temperatures[n]) + ")");
        }
    }
    check_offsets("edit_offsets", selection.edit_offsets, selection.rows, edits, 0);
    for (int64_t e = 0; e < edits; ++e) {
        require(selection.edit_ids[e] >= 0 && selection.edit_ids[e] < vocab_size,
                "edit_ids lie outside of the vocabulary", e, selection.edit_ids[e]);
    }
}

}  // namespace llmd
