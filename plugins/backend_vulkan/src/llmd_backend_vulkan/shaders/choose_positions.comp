// The positions with the `top_k` highest scores of a row, of equal ones the later, ascending, as float32. A row that
// sees no more positions gets all of them, then -1. `positions` has the last one that a row sees, -1 if there is none.
//
// A work group has a row. It counts scores (index_scores.comp) by 8 bits of their order at a time, the highest first,
// until it knows the lowest score that is chosen. Then each thread writes the chosen positions of a range of its own.
// Groups: (rows); they begin with `first_row`.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 256) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, positions, scores, score_stride, out_at, out_stride, first_row, top_k;
};

const uint THREADS = 256;
#include "prefix.glsl"

shared uint found[256]; // scores with each digit
shared uint digit, left, equal;

// An integer with the order of floats; 0 and -0 are equal.
uint order_at(uint at) {
    uint bits = work[at] == 0x80000000u ? 0u : work[at];
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

// Counts the digits of the scores whose upper bits `known` are `lowest`. Neighbouring scores are often equal: a thread
// adds a run of equal digits at once.
void count_digits(uint from, uint seen, uint lowest, uint known, uint shift) {
    uint thread = gl_LocalInvocationID.x, last = 0u, run = 0u;
    found[thread] = 0u;
    barrier();
    for (uint i = thread; i < seen; i += THREADS) {
        uint order = order_at(from + i);
        if ((order & known) != lowest) {
            continue;
        }
        uint mine = (order >> shift) & 255u;
        if (mine != last && run != 0u) {
            atomicAdd(found[last], run);
            run = 0u;
        }
        last = mine;
        run++;
    }
    if (run != 0u) {
        atomicAdd(found[last], run);
    }
    barrier();
}

// Finds the digit of the lowest score that is chosen, of which `wanted` are left.
void find_digit(uint wanted) {
    uint own = 255u - gl_LocalInvocationID.x, count = found[own], before = sum_before(count);
    if (before < wanted && wanted <= before + count) {
        digit = own;
        left = wanted - before;
        equal = count;
    }
    barrier();
}

// Writes the positions above `lowest`, and those equal to it but for the first `skipped`.
void write_chosen(uint from, uint seen, uint lowest, uint skipped, uint to) {
    uint each = (seen + THREADS - 1u) / THREADS;
    uint begin = min(gl_LocalInvocationID.x * each, seen), end = min(begin + each, seen);
    uint above = 0u, same = 0u;
    for (uint i = begin; i < end; i++) {
        uint order = order_at(from + i);
        above += uint(order > lowest);
        same += uint(order == lowest);
    }
    above = sum_before(above);
    same = sum_before(same);
    for (uint i = begin; i < end; i++) {
        uint order = order_at(from + i);
        if (order > lowest || (order == lowest && same >= skipped)) {
            put(to + above + (same > skipped ? same - skipped : 0u), float(i));
        }
        above += uint(order > lowest);
        same += uint(order == lowest);
    }
}

void main() {
    uint row = first_row + gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    uint seen = work[positions + row] + 1u, to = out_at + row * out_stride;
    if (seen <= top_k) {
        for (uint i = thread; i < top_k; i += THREADS) {
            put(to + i, i < seen ? float(i) : -1.0);
        }
        return;
    }
    uint from = scores + gl_WorkGroupID.x * score_stride, lowest = 0u, known = 0u, wanted = top_k;
    for (uint byte = 0; byte < 4u; byte++) {
        uint shift = 24u - 8u * byte;
        count_digits(from, seen, lowest, known, shift);
        find_digit(wanted);
        lowest |= digit << shift;
        known |= 255u << shift;
        wanted = left;
    }
    write_chosen(from, seen, lowest, equal - wanted, to);
}
