// out += middle b^T * scale, for the rows of a step that have an adapter (adapter.glsl), after adapt_middle.comp.
//
// A thread has a row of a matrix `b`, whose elements are in this buffer with this format, and so an output of each row of
// an item. Sums are in order of the ranks. Groups: (outputs / 64, items), with the outputs of all values.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "plain.glsl"
#include "work.glsl"
#include "adapter.glsl"

void main() {
    uint item = gl_WorkGroupID.y, piece = gl_WorkGroupID.x, value = 0;
    if (!find_item(item)) {
        return;
    }
    for (; value < values; value++) {
        uint pieces = (work[change_at(value) + 13u] + 63u) / 64u;
        if (piece < pieces) {
            break;
        }
        piece -= pieces;
    }
    uint change = change_at(value), output_at = piece * 64u + gl_LocalInvocationID.x, rank = rank_of(change);
    if (value == values || rank == 0u || work[change + 6u] != buffer_number || work[change + 7u] != FORMAT ||
        output_at >= work[change + 13u]) {
        return;
    }
    uint row = work[change + 8u] + output_at * work[change + 9u];
    precise float sums[ROWS];
    for (uint n = 0; n < ROWS; n++) {
        sums[n] = 0.0;
    }
    for (uint k = 0; k < rank; k++) {
        float weight = element(row, k);
        for (uint n = 0; n < ROWS; n++) {
            if (n < num_rows) {
                sums[n] = fma(number(middle_of(item, n, change) + k), weight, sums[n]);
            }
        }
    }
    float scale = number(change + 10u);
    for (uint n = 0; n < ROWS; n++) {
        if (n < num_rows) {
            uint at = work[change + 11u] + row_number(n) * work[change + 12u] + output_at;
            put(at, fma(sums[n], scale, number(at)));
        }
    }
}
