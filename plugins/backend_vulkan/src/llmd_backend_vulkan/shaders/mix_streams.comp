// out[k] = write[k] * y + sum over streams i of mix[i, k] * x[i], in ascending order: the residual connection. `weights`
// has what stream_weights.comp writes. Groups: (streams * width / 256, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, x, stride, y, y_stride, weights, weight_stride, out_at, width, streams;
};

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[counts]) {
        return;
    }
    uint write = weights + row * weight_stride + streams, mix_at = write + streams;
    for (uint step_at = 0; step_at < 4u; step_at++) {
        uint at = gl_WorkGroupID.x * 256u + step_at * 64u + gl_LocalInvocationID.x;
        if (at >= streams * width) {
            return;
        }
        uint k = at / width, column = at % width;
        precise float total = number(y + row * y_stride + column) * number(write + k);
        for (uint i = 0; i < streams; i++) {
            total = fma(number(x + row * stride + i * width + column), number(mix_at + i * streams + k), total);
        }
        put(out_at + row * stride + at, total);
    }
}
