// Copy the rows of each head, [heads][most_rows][slice_stride], to the slices of the rows of a slot.
// Groups: (width / 64, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, slices, slice_stride, slice, most_rows, out_at, out_stride, width;
};

void main() {
    uint row = gl_WorkGroupID.y, column = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    if (row >= work[counts] || column >= width) {
        return;
    }
    uint from = slices + (column / slice * most_rows + row) * slice_stride + column % slice;
    work[out_at + row * out_stride + column] = work[from];
}
