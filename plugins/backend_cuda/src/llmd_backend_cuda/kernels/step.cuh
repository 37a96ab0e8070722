// The step that kernels run, in device memory at fixed addresses: a captured graph reads what the host wrote
// last. No kernel writes it, so that it may be read before wait_for_previous_kernel.
#pragma once

#include "gpu.cuh"

struct Step {
    const i32* counts;       // [3]: rows, sequences, output rows
    const i32* token_ids;    // [rows]; negative: see token_of
    const i32* positions;    // [rows]
    const i32* sequences;    // [rows]: the sequence of each row
    const i32* token_types;  // [rows]
    const i32* row_offsets;  // [sequences + 1]
    const i32* output_rows;  // [output rows]: a row of the step for each
    const i32* const* fed;   // [1]: the tokens of the output rows of the step that this one is fed from
};

// The token of an id: -1 - i stands for that of output row i of the step that this one is fed from.
DEVICE int token_of(i32 id, const i32* const* fed) { return id < 0 ? (*fed)[-1 - id] : id; }

// The blocks of a sequence. `table` describes the block table of a KV group, [sequences, width]: how many
// integers behind this place it begins, and its width, which is that of the step.
DEVICE const i32* blocks_of(const i32* table, int sequence) {
    const Words2 place = *(const Words2*)table;
    return table + (i32)place.x + (i64)sequence * (i32)place.y;
}
