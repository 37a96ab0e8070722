// Rows of experts: the rows of a step are grouped by expert, so that each expert is read once.
//
// An *assigned row* is a row of the step for one of its experts. Those of an expert are consecutive, in the
// order of the step, and cut into *groups* of as many rows as a block multiplies.
//
// The matrices of an expert are members of stacks, or all in one *block*, in device memory or in main memory
// that the device can read.
//
// Definitions: EXPERTS 1 if each group is multiplied by the matrix of its expert, and then CACHED 1 if that
// is in a block, else it is a member of a stack; HEADS 1 if each slice of a row has its own matrix of a
// stack. Then a group has the same slice of all of its rows.
#pragma once

#include "activations.cuh"

#ifndef EXPERTS
#define EXPERTS 0
#endif
#ifndef CACHED
#define CACHED 0
#endif
#ifndef HEADS
#define HEADS 0
#endif

// Rows that a block multiplies by matrices of one member of their stacks. Without experts that is member 0.
struct alignas(16) Group {
    i32 member;
    i32 first_row, end_row;  // assigned rows; equal if the group does not exist
    i32 unused;
};
DEVICE int rows_of(const Group& group) { return group.end_row - group.first_row; }

// The number of a row of a group in arrays of rows. With HEADS, these have the slices of each row as rows of
// their own, `heads` for each row.
DEVICE int place_of_row(const Group& group, int row, int heads) {
    return HEADS ? row * heads + group.member : row;
}

// What happens between the matrices of an expert.
struct ExpertGate {
    float limit;  // infinity: none
    float offset;
    i32 activation;
};

DEVICE float gated(const ExpertGate& of, float gate, float up) {
    const float bounded = fmaxf(fminf(up, of.limit), -of.limit);
    return activate(of.activation, fminf(gate, of.limit), 0.0f) * (bounded + of.offset);
}
