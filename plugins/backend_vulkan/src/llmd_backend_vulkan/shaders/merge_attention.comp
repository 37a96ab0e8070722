// Attention to two sets of positions from that to each: a * exp(a_sum - s) + b * exp(b_sum - s) for each head, with
// s = log(exp(a_sum) + exp(b_sum)). A set may be empty: its sum is minus infinity. Groups: (heads, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "infinity.glsl"
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, a, b, stride, a_sums, b_sums, sums_stride, out_at, dim;
};

void main() {
    uint row = gl_WorkGroupID.y, of_head = row * sums_stride + gl_WorkGroupID.x;
    if (row >= work[counts]) {
        return;
    }
    bool has_a = work[a_sums + of_head] != MINUS_INFINITY, has_b = work[b_sums + of_head] != MINUS_INFINITY;
    float a_sum = has_a ? number(a_sums + of_head) : 0.0, b_sum = has_b ? number(b_sums + of_head) : 0.0;
    float largest = has_a && has_b ? max(a_sum, b_sum) : has_a ? a_sum : b_sum;
    float of_a = has_a ? exp(a_sum - largest) : 0.0, of_b = has_b ? exp(b_sum - largest) : 0.0;
    precise float total = has_a || has_b ? of_a + of_b : 1.0;
    precise float first = of_a / total, second = of_b / total;
    uint from = row * stride + gl_WorkGroupID.x * dim;
    for (uint i = gl_LocalInvocationID.x; i < dim; i += 64u) {
        precise float mean = fma(number(a + from + i), first, number(b + from + i) * second);
        put(out_at + from + i, mean);
    }
}
