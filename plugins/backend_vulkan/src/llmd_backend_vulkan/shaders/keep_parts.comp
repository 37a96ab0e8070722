// Round what vectors for several tokens are made of, x and gate of each row, and store both as one latent vector
// (kv_layout.glsl) for compress.comp. Groups: (any number, rows); those of a row share its words. KV: 0, 1 or 2.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "halves.glsl"
#include "kv_layout.glsl"
#include "work.glsl"
layout(binding = 1) writeonly buffer Pool { uint pool[]; };
layout(push_constant) uniform Push {
    uint counts, x, gate, stride, positions, sequences, table, pool_at, block_words, width;
};

float element(uint row, uint index) {
    if (index >= 2u * width) {
        return 0.0;
    }
    return number((index < width ? x + index : gate + index - width) + row * stride);
}

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[counts]) {
        return;
    }
    uint position = work[positions + row];
    uint block = work[table_at(table) + work[sequences + row] * work[table + 1u] + position / 16u];
    uint words = head_words(2u * width), to = pool_at + block * block_words + position % 16u * words;
    for (uint word = gl_GlobalInvocationID.x; word < words; word += 64u * gl_NumWorkGroups.x) {
        if (KV == 0u) {
            pool[to + word] = floatBitsToUint(element(row, word));
        } else {
            float first = element(row, 2u * word), second = element(row, 2u * word + 1u);
            pool[to + word] = KV == 1u ? to_half(first) | (to_half(second) << 16)
                                       : to_bfloat(first) | (to_bfloat(second) << 16);
        }
    }
}
