// out = sum over streams i of weights[i] * x[i], in ascending order: what a layer reads. Groups: (width / 256, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, x, x_stride, weights, weight_stride, out_at, out_stride, width, streams;
};

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[counts]) {
        return;
    }
    for (uint step_at = 0; step_at < 4u; step_at++) {
        uint column = gl_WorkGroupID.x * 256u + step_at * 64u + gl_LocalInvocationID.x;
        if (column >= width) {
            return;
        }
        precise float total = 0.0;
        for (uint i = 0; i < streams; i++) {
            float weight = number(weights + row * weight_stride + i);
            total = fma(number(x + row * x_stride + i * width + column), weight, total);
        }
        put(out_at + row * out_stride + column, total);
    }
}
