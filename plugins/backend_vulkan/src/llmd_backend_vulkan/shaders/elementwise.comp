// OP 0: out = a + b * scale    1: out = activation(a) * b    2: out = activation(a)    3: out = a * sigmoid(b)
//    4: out = a * a learned factor    With LIMITED, 1 has min(a, limit) for a, and b within +-limit.
//
// a and out have the same width; b has an element for each `slice` elements of them. Groups: (width / 256, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint OP = 0;
layout(constant_id = 1) const uint ACTIVATION = 0;
layout(constant_id = 2) const bool LIMITED = false;
#include "activations.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Factors { uint factors[]; };
layout(push_constant) uniform Push {
    uint counts, a, b, out_at, stride, width, b_stride, slice, factor_at;
    float scale, threshold, limit;
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
        float other = OP == 2u || OP == 4u ? 0.0 : number(b + row * b_stride + column / slice);
        if (OP == 0u) {
            value = value + other * scale;
        } else if (OP == 3u) {
            value = value * sigmoid(other);
        } else if (OP == 4u) {
            value = value * uintBitsToFloat(factors[factor_at]);
        } else {
            if (LIMITED) {
                value = min(value, limit);
                other = max(min(other, limit), -limit);
            }
            value = activated(ACTIVATION, value, threshold);
            if (OP == 1u) {
                value = value * other;
            }
        }
        put(out_at + at, value);
    }
}
