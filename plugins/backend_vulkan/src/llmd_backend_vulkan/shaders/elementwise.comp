// OP 0: out = a + b * scale    1: out = activation(a) * b    2: out = activation(a)
//
// All slots have the same width. Groups: (width / 256, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint ACTIVATION = 0;
#include "activations.glsl"
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, a, b, out_at, stride, width;
    float scale, threshold;
};

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[counts]) {
        return;
    }
    for (uint i = 0; i < 4u; i++) {
        uint column = gl_WorkGroupID.x * 256u + i * 64u + gl_LocalInvocationID.x;
        if (column >= width) {
            return;
        }
        uint at = row * stride + column;
        precise float value = number(a + at);
        if (OP == 0u) {
            value = value + number(b + at) * scale;
        } else {
            value = activated(ACTIVATION, value, threshold);
            if (OP == 1u) {
                value = value * number(b + at);
            }
        }
        put(out_at + at, value);
    }
}
