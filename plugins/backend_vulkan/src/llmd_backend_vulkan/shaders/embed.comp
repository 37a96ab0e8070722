// out[row] = table[index[row]] * scale, for those indices that are in this piece of the table: [first, first + count).
//
// A piece is [count][row_words] of elements (plain.glsl). Of a row of the table, the `width` columns from `first_column`
// on are looked up. Groups: (width / 256, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "plain.glsl"
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, index, out_at, out_stride, width, first_column, table_at, row_words, first, count;
    float scale;
};

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[counts]) {
        return;
    }
    uint entry = work[index + row] - first; // a wrapped difference is not below the count
    if (entry >= count) {
        return;
    }
    uint at = table_at + entry * row_words;
    for (uint i = 0; i < 4u; i++) {
        uint column = gl_WorkGroupID.x * 256u + i * 64u + gl_LocalInvocationID.x;
        if (column < width) {
            put(out_at + row * out_stride + column, element(at, first_column + column) * scale);
        }
    }
}
