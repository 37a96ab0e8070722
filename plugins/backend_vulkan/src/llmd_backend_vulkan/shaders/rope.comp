// A pair (u, v) of a head becomes (u c - v s, v c + u s). The host computes c and s in float64 for each row of a step:
// table is [rows][pairs][2]. Pairs are elements i and i + pairs, or 2 i and 2 i + 1 if INTERLEAVED; elements from
// 2 pairs on are copied. Groups: (elements / 64, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool INTERLEAVED = false;
#include "work.glsl"
layout(push_constant) uniform Push { uint counts, x, out_at, stride, heads, head_dim, pairs, table; };

void main() {
    uint row = gl_WorkGroupID.y, element = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    if (row >= work[counts] || element >= heads * head_dim) {
        return;
    }
    uint in_head = element % head_dim;
    uint from = x + row * stride + element;
    precise float value = number(from);
    if (in_head < 2u * pairs) {
        uint pair = INTERLEAVED ? in_head / 2u : in_head % pairs;
        bool is_second = INTERLEAVED ? (in_head & 1u) == 1u : in_head >= pairs;
        uint distance = INTERLEAVED ? 1u : pairs;
        uint angle = table + (row * pairs + pair) * 2u;
        precise float along = value * number(angle);
        precise float across = number(is_second ? from - distance : from + distance) * number(angle + 1u);
        value = is_second ? along + across : along - across;
    }
    put(out_at + row * stride + element, value);
}
