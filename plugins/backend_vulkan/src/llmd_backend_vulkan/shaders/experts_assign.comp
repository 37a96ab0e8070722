// Group the rows of a step by expert, so that each expert is read once. An *assigned row* is a row of the step for one
// of its experts. Those of an expert are consecutive, in the order of the step, and cut into groups of `group_rows`.
//
// routes: float32 [rows][stride], the weight of each expert; 0 if the row does not use it. Results:
// groups       [most_groups][4]: an expert, its first assigned row, the one after the last; no rows if there is no group
// assigned     [1]: the number of assigned rows
// row_numbers  [assigned rows]: the row of the step
// places       [rows][experts]: the assigned row, if the row uses the expert
//
// One work group. A thread counts the rows of an expert in a range of rows, then numbers them.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 256) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, routes, stride, experts, groups, most_groups, group_rows, assigned, row_numbers, places;
};

const uint THREADS = 256;
const uint MOST_EXPERTS = 1024;

shared uint found[MOST_EXPERTS]; // of a range and an expert: its rows, then the first assigned row
#include "prefix.glsl"

bool uses(uint row, uint expert) { return (work[routes + row * stride + expert] & 0x7fffffffu) != 0u; }

uint rows_of(uint expert, uint ranges) {
    uint rows = 0u;
    for (uint range = 0; range < ranges; range++) {
        rows += found[range * experts + expert];
    }
    return rows;
}

uint groups_of(uint rows) { return (rows + group_rows - 1u) / group_rows; }

void put_group(uint number, uint expert, uint first, uint end) {
    uint at = groups + 4u * number;
    work[at] = expert;
    work[at + 1u] = first;
    work[at + 2u] = end;
}

void main() {
    uint thread = gl_LocalInvocationID.x, rows = work[counts];
    uint ranges = max(THREADS / experts, 1u), in_range = (rows + ranges - 1u) / ranges;
    for (uint i = thread; i < experts * ranges; i += THREADS) {
        uint first = i / experts * in_range, count = 0u;
        for (uint row = first; row < min(first + in_range, rows); row++) {
            count += uses(row, i % experts) ? 1u : 0u;
        }
        found[i] = count;
    }
    barrier();
    uint each = (experts + THREADS - 1u) / THREADS; // experts of a thread
    uint begin = min(thread * each, experts), end = min(begin + each, experts), own_rows = 0u, own_groups = 0u;
    for (uint expert = begin; expert < end; expert++) {
        own_rows += rows_of(expert, ranges);
        own_groups += groups_of(rows_of(expert, ranges));
    }
    uint place = sum_before(own_rows), all_rows = sums[THREADS - 1u];
    uint number = sum_before(own_groups), all_groups = sums[THREADS - 1u];
    for (uint expert = begin; expert < end; expert++) {
        uint last = place + rows_of(expert, ranges);
        for (uint first = place; first < last; first += group_rows) {
            put_group(number++, expert, first, min(first + group_rows, last));
        }
        for (uint range = 0; range < ranges; range++) {
            uint count = found[range * experts + expert];
            found[range * experts + expert] = place;
            place += count;
        }
    }
    for (uint unused = all_groups + thread; unused < most_groups; unused += THREADS) {
        put_group(unused, 0u, 0u, 0u);
    }
    if (thread == 0u) {
        work[assigned] = all_rows;
    }
    barrier();
    for (uint i = thread; i < experts * ranges; i += THREADS) {
        uint first = i / experts * in_range, to = found[i];
        for (uint row = first; row < min(first + in_range, rows); row++) {
            if (uses(row, i % experts)) {
                work[row_numbers + to] = row;
                work[places + row * experts + i % experts] = to;
                to++;
            }
        }
    }
}
