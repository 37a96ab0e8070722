// The elements of a plain matrix, packed into words from the lowest bits on.
//
// FORMAT: 32, 16 (float16), 17 (bfloat16).

layout(constant_id = 0) const uint FORMAT = 32;
#include "halves.glsl"
layout(binding = 1) readonly buffer Table { uint table[]; };

// An element of the row that begins at word `at`.
float element(uint at, uint column) {
    if (FORMAT == 32u) {
        return uintBitsToFloat(table[at + column]);
    }
    uint bits = (table[at + column / 2u] >> (16u * (column & 1u))) & 0xffffu;
    return FORMAT == 16u ? from_half(bits) : uintBitsToFloat(bits << 16);
}
