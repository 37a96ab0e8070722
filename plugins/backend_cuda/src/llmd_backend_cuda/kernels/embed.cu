// embed: out[r] = table[index[r]] * scale
//
//   index  [rows]            the token id, position or token type of each row
//   table  [entries, entry_width]  f32, f16 or bf16 (FORMAT 0, 1, 2), used with their exact values, from a
//                            column on
//   out    [rows, width]     f32: the product with the scale in float64, rounded once
//   work   a thread makes VECTOR neighbouring elements of a row: 4, or 1 if rows are not aligned.
//          Block x has row x
//   speed  bound by the launch for few rows, else by the memory that `out` is written to

#include "step.cuh"
#include "stored.cuh"

#ifndef VECTOR
#define VECTOR 4
#define SCALED 1
#endif

// Neighbouring elements that are read and written by one instruction.
struct alignas(VECTOR * sizeof(Stored)) Entries {
    Stored at[VECTOR];
};
struct alignas(VECTOR * sizeof(float)) Elements {
    float at[VECTOR];
};

struct Args {
    const i32* index;
    const i32* const* fed;  // of negative token ids
    const void* table;
    float* out;
    double scale;
    i32 width;
    i32 entry_width;  // elements between entries
};

KERNEL embed(Args args) {
    const int row = block_x();
    const int column = (block_y() * num_threads() + thread_index()) * VECTOR;
    if (column >= args.width) return;
    const i64 place = (i64)token_of(args.index[row], args.fed) * args.entry_width;
    const Stored* entry = (const Stored*)args.table + place;
    const Entries found = *(const Entries*)(entry + column);
    Elements scaled;
    for (int i = 0; i < VECTOR; ++i) {
        const float value = value_of(found.at[i]);
        scaled.at[i] = SCALED ? (float)(value * args.scale) : value;
    }
    *(Elements*)(args.out + (i64)row * args.width + column) = scaled;
}
