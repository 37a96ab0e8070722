// out[row] = sum over the experts of the row, in ascending order: route * output of its assigned row
// (experts_assign.comp). Groups: (width / 256, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, routes, routes_stride, experts, places, outputs, outputs_stride, out_at, out_stride, width;
};

const uint MOST_EXPERTS = 1024;

shared uint used[MOST_EXPERTS / 32u]; // a bit for each expert

void main() {
    uint row = gl_WorkGroupID.y, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    if (thread < MOST_EXPERTS / 32u) {
        used[thread] = 0u;
    }
    barrier();
    uint of_row = routes + row * routes_stride;
    for (uint expert = thread; expert < experts; expert += 64u) {
        if ((work[of_row + expert] & 0x7fffffffu) != 0u) {
            atomicOr(used[expert / 32u], 1u << (expert & 31u));
        }
    }
    barrier();
    precise float totals[4] = float[4](0.0, 0.0, 0.0, 0.0);
    for (uint first = 0; first < experts; first += 32u) {
        for (uint bits = used[first / 32u]; bits != 0u; bits &= bits - 1u) {
            uint expert = first + uint(findLSB(bits));
            uint from = outputs + work[places + row * experts + expert] * outputs_stride;
            for (uint i = 0; i < 4u; i++) {
                uint column = gl_WorkGroupID.x * 256u + i * 64u + thread;
                if (column < width) {
                    totals[i] = fma(number(from + column), number(of_row + expert), totals[i]);
                }
            }
        }
    }
    for (uint i = 0; i < 4u; i++) {
        uint column = gl_WorkGroupID.x * 256u + i * 64u + thread;
        if (column < width) {
            put(out_at + row * out_stride + column, totals[i]);
        }
    }
}
