// out[head] = [a[head], b[head]]: joins the slices of two values. Groups: (width / 64, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, a, a_stride, b, b_stride, out_at, out_stride, a_dim, b_dim, width;
};

void main() {
    uint row = gl_WorkGroupID.y, column = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    if (row >= work[counts] || column >= width) {
        return;
    }
    uint head = column / (a_dim + b_dim), element = column % (a_dim + b_dim);
    uint from = element < a_dim ? a + row * a_stride + head * a_dim + element
                                : b + row * b_stride + head * b_dim + element - a_dim;
    work[out_at + row * out_stride + column] = work[from];
}
