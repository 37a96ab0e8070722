// Copy the slice of each head of a row to a row of its own, [heads][most_rows][slice_stride], with zeros behind it, and
// write the groups of rows that are multiplied by the matrix of a head (experts_assign.comp): of each head,
// [most_rows / group_rows]. Groups: (rows, heads).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, x, x_stride, slices, slice_stride, slice, most_rows, groups, group_rows;
};

void main() {
    uint row = gl_WorkGroupID.x, head = gl_WorkGroupID.y, thread = gl_LocalInvocationID.x, rows = work[counts];
    if (row % group_rows == 0u && thread == 0u) {
        uint at = groups + 4u * (head * ((most_rows + group_rows - 1u) / group_rows) + row / group_rows);
        work[at] = head;
        work[at + 1u] = head * most_rows + min(row, rows);
        work[at + 2u] = head * most_rows + min(row + group_rows, rows);
    }
    if (row >= rows) {
        return;
    }
    for (uint i = thread; i < slice_stride; i += 64u) {
        uint value = i < slice ? work[x + row * x_stride + head * slice + i] : 0u;
        work[slices + (head * most_rows + row) * slice_stride + i] = value;
    }
}
