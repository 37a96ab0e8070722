// What the kernels for many rows share: their arguments, and which weights a block multiplies.
#pragma once

#include "rows.cuh"
#include "weights.cuh"

struct Args {
    const u8* x;      // [num_rows, chunks], each chunk X_CHUNK bytes
    i32 num_rows;     // of experts: assigned rows
    i32 num_columns;  // of all outputs
    float* partials;
    Output outputs[MATRICES];
    Matrix matrices[MATRICES];
    const Group* groups;  // of experts
    i32 heads;            // slices of a row, with HEADS
    const u64* blocks;    // address of the block of each expert, with CACHED
};

// The first weights of a block.
struct Place {
    int matrix, tile;
    int column;  // in a row of all outputs, of the matrix
};

// A block takes `tiles` tiles of one matrix; grid y counts those of all matrices.
DEVICE Place place_of_block(const Args& args, int tiles) {
    Place place = {0, block_y() * tiles, 0};
    while (place.matrix + 1 < MATRICES) {
        const int rounded = (args.outputs[place.matrix].tiles + tiles - 1) / tiles * tiles;
        if (place.tile < rounded) break;
        place.tile -= rounded;
        place.column += args.outputs[place.matrix].width;
        ++place.matrix;
    }
    return place;
}
