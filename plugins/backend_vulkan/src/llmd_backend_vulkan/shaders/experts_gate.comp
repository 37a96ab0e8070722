// out = activation(min(gate, limit)) * (clamp(up, -limit, limit) + offset), or without a gate activation(up), for all
// assigned rows (experts_assign.comp); 0 between the width and the stride. `out` may be `up`.
// Groups: (stride / 256, rows, experts of a row): Vulkan promises no more than 65535 in one direction.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool GATED = true;
layout(constant_id = 1) const uint ACTIVATION = 0;
#include "activations.glsl"
#include "work.glsl"
layout(push_constant) uniform Push {
    uint assigned, gate, up, out_at, stride, width;
    float limit, offset;
};

float result(uint at) {
    float up_value = number(up + at);
    if (!GATED) {
        return activated(ACTIVATION, up_value, 0.0);
    }
    precise float value = max(min(up_value, limit), -limit) + offset;
    value = activated(ACTIVATION, min(number(gate + at), limit), 0.0) * value;
    return value;
}

void main() {
    uint row = gl_WorkGroupID.y * gl_NumWorkGroups.z + gl_WorkGroupID.z;
    if (row >= work[assigned]) {
        return;
    }
    for (uint i = 0; i < 4u; i++) {
        uint column = gl_WorkGroupID.x * 256u + i * 64u + gl_LocalInvocationID.x;
        if (column < stride) {
            put(out_at + row * stride + column, column < width ? result(row * stride + column) : 0.0);
        }
    }
}
