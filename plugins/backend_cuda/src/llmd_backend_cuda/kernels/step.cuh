// The step that kernels run, in device memory at fixed addresses: a captured graph reads what the host wrote
// last.
#pragma once

#include "gpu.cuh"

struct Step {
    const i32* counts;       // [3]: rows, sequences, output rows
    const i32* token_ids;    // [rows]
    const i32* positions;    // [rows]
    const i32* sequences;    // [rows]: the sequence of each row
    const i32* token_types;  // [rows]
    const i32* row_offsets;  // [sequences + 1]
    const i32* output_rows;  // [output rows]: a row of the step for each
};
