// middle = x a^T, for the rows of a step that have an adapter (adapter.glsl).
//
// A work group has a row of a matrix `a`, whose elements are in this buffer with this format, and the rows of an item;
// each thread has every 64th column. Sums have an order that depends on the width alone. Groups: (ranks, items).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
const uint THREADS = 64; // of a work group
#include "plain.glsl"
#include "totals.glsl"
#include "work.glsl"
#include "adapter.glsl"

void main() {
    uint item = gl_WorkGroupID.y, rank = gl_WorkGroupID.x, value = 0;
    if (!find_item(item)) {
        return;
    }
    for (; value < values && rank >= rank_of(change_at(value)); value++) {
        rank -= rank_of(change_at(value));
    }
    uint change = change_at(value);
    if (value == values || work[change + 2u] != buffer_number || work[change + 3u] != FORMAT) {
        return;
    }
    uint row = work[change + 4u] + rank * work[change + 5u];
    precise float sums[ROWS];
    for (uint n = 0; n < ROWS; n++) {
        sums[n] = 0.0;
    }
    for (uint column = gl_LocalInvocationID.x; column < width; column += THREADS) {
        float weight = element(row, column);
        for (uint n = 0; n < ROWS; n++) {
            if (n < num_rows) {
                sums[n] = fma(weight, number(x + row_number(n) * x_stride + column), sums[n]);
            }
        }
    }
    for (uint n = 0; n < ROWS; n++) {
        float sum = sum_of_threads(sums[n]);
        if (n < num_rows && gl_LocalInvocationID.x == 0u) {
            put(middle_of(item, n, change) + rank, sum);
        }
    }
}
