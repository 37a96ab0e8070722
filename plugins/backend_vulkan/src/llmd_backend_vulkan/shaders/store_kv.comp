// Round the keys and values of the rows of a step, and store them in the blocks of their positions (kv_layout.glsl). Of
// `token_stride` rows, the last one stores the vector that stands for all.
// ROTATED: keys are turned before, as rope.comp does: 1 pairs elements i and i + pairs, 2 pairs 2 i and 2 i + 1.
//
// int8: s = half(max |x| / 127) of 32 elements, codes rint(x * (1 / s)) within -127 .. 127; 0 if s is 0.
// int4: store_int4.glsl. Groups: (2 kv_heads, rows): keys first;
// (kv_heads, rows) if values are the first elements of keys. Threads: a word, two groups of 32 elements in int8, or
// elements in int4.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint ROTATED = 0;
#include "halves.glsl"
#include "kv_layout.glsl"
#include "work.glsl"
layout(binding = 1) writeonly buffer Pool { uint pool[]; };
layout(push_constant) uniform Push {
    uint counts, k, v, stride, positions, sequences, table, pool_at, block_words, kv_heads, head_dim;
    uint pairs, rotations, token_stride, vector_bits;
};

#include "kv_int4.glsl"
#include "store_int4.glsl"

float turned(uint from, uint index) {
    uint pair = ROTATED == 2u ? index / 2u : index % pairs;
    bool is_second = ROTATED == 2u ? (index & 1u) == 1u : index >= pairs;
    uint distance = ROTATED == 2u ? 1u : pairs;
    uint angle = rotations + (gl_WorkGroupID.y * pairs + pair) * 2u;
    precise float along = number(from + index) * number(angle);
    precise float across = number(is_second ? from + index - distance : from + index + distance) * number(angle + 1u);
    precise float result = is_second ? along + across : along - across;
    return result;
}

float element(uint from, uint index) {
    if (index >= head_dim) {
        return 0.0;
    }
    return ROTATED != 0u && gl_WorkGroupID.x < kv_heads && index < 2u * pairs ? turned(from, index)
                                                                             : number(from + index);
}

// Writes the codes of 32 elements; returns their scale as float16.
uint put_group(uint from, uint to, uint group) {
    float largest = 0.0;
    for (uint i = 0; i < 32u; i++) {
        largest = max(largest, abs(element(from, 32u * group + i)));
    }
    uint scale = to_half(largest / 127.0);
    float inverse = scale == 0u ? 0.0 : 1.0 / from_half(scale);
    for (uint word = 8u * group; word < min(8u * group + 8u, code_words(head_dim)); word++) {
        uint packed_codes = 0u;
        for (uint i = 0; i < 4u; i++) {
            int code = int(clamp(roundEven(element(from, 4u * word + i) * inverse), -127.0, 127.0));
            packed_codes |= (uint(code) & 255u) << (8u * i);
        }
        pool[to + word] = packed_codes;
    }
    return scale;
}

void main() {
    uint row = gl_WorkGroupID.y, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    uint end = work[positions + row] + 1u, position = end / token_stride - 1u; // of a vector
    if (end % token_stride != 0u) {
        return;
    }
    uint block = work[table_at(table) + work[sequences + row] * work[table + 1u] + (position >> vector_bits)];
    uint head = gl_WorkGroupID.x % kv_heads;
    uint from = (gl_WorkGroupID.x < kv_heads ? k : v) + row * stride + head * head_dim;
    uint in_block = (gl_WorkGroupID.x << vector_bits) + (position & ((1u << vector_bits) - 1u));
    uint to = pool_at + block * block_words + in_block * head_words(head_dim);
    if (KV == 4u) {
        for (uint i = thread; i < head_dim; i += 64u) {
            head_values[i] = element(from, i);
        }
        store_rotated(to, (position & 1u) == 1u, head_dim);
        return;
    }
    if (KV == 3u) {
        for (uint pair = thread; pair < (head_dim + 63u) / 64u; pair += 64u) {
            uint low = put_group(from, to, 2u * pair);
            uint high = 64u * pair + 32u < head_dim ? put_group(from, to, 2u * pair + 1u) : 0u;
            pool[to + code_words(head_dim) + pair] = low | (high << 16);
        }
        return;
    }
    for (uint word = thread; word < code_words(head_dim); word += 64u) {
        if (KV == 0u) {
            pool[to + word] = floatBitsToUint(element(from, word));
        } else {
            float first = element(from, 2u * word), second = element(from, 2u * word + 1u);
            pool[to + word] = KV == 1u ? to_half(first) | (to_half(second) << 16)
                                       : to_bfloat(first) | (to_bfloat(second) << 16);
        }
    }
}
