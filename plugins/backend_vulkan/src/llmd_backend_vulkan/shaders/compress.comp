// The vector that stands for `stride` tokens, in the row of the last of them; the other rows are 0.
//
// out = sum over tokens t of softmax(gate[t] + bias[t % stride]) * x[t], for each element, in ascending order of tokens.
// These are the last `span` tokens: those that the vector stands for, with the last `dim` elements of x and gate, and if
// vectors overlap also as many before them, with the first elements. The pool has x and gate of each (keep_parts.comp).
// Groups: (dim / 64, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "halves.glsl"
#include "kv_layout.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Pool { uint pool[]; };
layout(binding = 2) readonly buffer Biases { uint biases[]; };
layout(push_constant) uniform Push {
    uint counts, positions, sequences, table, pool_at, block_words, head_dim, out_at, out_stride, bias_at;
    uint dim, stride, span;
};
const uint kv_heads = 1, value_kind = 0, vector_bits = 4;
#define POSITION_OF(position) position
#include "attention_keys.glsl"

float gate_of(uint token, uint element) {
    uint width = head_dim / 2u;
    return key(token, width + element) + uintBitsToFloat(biases[bias_at + token % stride * width + element]);
}

void main() {
    uint row = gl_WorkGroupID.y, element = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    if (row >= work[counts] || element >= dim) {
        return;
    }
    uint end = work[positions + row] + 1u, to = out_at + row * out_stride + element;
    if (end % stride != 0u) {
        put(to, 0.0);
        return;
    }
    table_row = table_at(table) + work[sequences + row] * work[table + 1u];
    words_of_head = head_words(head_dim);
    uint first = max(end, span) - span, own = end - stride, last_elements = head_dim / 2u - dim + element;
    float largest = -3.4028234663852886e38;
    for (uint t = first; t < end; t++) {
        largest = max(largest, gate_of(t, t < own ? element : last_elements));
    }
    precise float total = 0.0, sum = 0.0;
    for (uint t = first; t < end; t++) {
        uint at = t < own ? element : last_elements;
        precise float weight = exp(gate_of(t, at) - largest);
        total = total + weight;
        sum = fma(weight, key(t, at), sum);
    }
    precise float mean = sum / total;
    put(to, mean);
}
