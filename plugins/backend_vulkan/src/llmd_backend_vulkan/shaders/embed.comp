// out[row] = table[index[row]] * scale, for those indices that are in this piece of the table: [first, first + count).
//
// A piece is [count][row_words], elements packed into words from the lowest bits on. FORMAT: 32, 16 (float16), 17
// (bfloat16). Of a row of the table, the `width` columns from `first_column` on are looked up. Groups: (width / 256, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FORMAT = 32;
#include "halves.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Table { uint table[]; };
layout(push_constant) uniform Push {
    uint counts, index, out_at, out_stride, width, first_column, table_at, row_words, first, count;
    float scale;
};

float element(uint at, uint column) {
    if (FORMAT == 32u) {
        return uintBitsToFloat(table[at + column]);
    }
    uint bits = (table[at + column / 2u] >> (16u * (column & 1u))) & 0xffffu;
    return FORMAT == 16u ? from_half(bits) : uintBitsToFloat(bits << 16);
}

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
