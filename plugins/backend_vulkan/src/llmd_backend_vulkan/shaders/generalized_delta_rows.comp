// What a row does to the matrix of a head in RWKV-7: with rate = sigmoid(a), it removes k * removal with length 1, puts
// rate times that in its place, and writes the key k * (1 + (rate - 1) * mixing), for a value; decays are
// exp(-exp(-1/2) * sigmoid(decay)). The row also reads sum(r * key * bonuses) * v of itself.
//
// Rows of the scratch memory are [removed, keys, put]. Groups: (heads, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
const uint THREADS = 64; // of a work group
#include "activations.glsl"
#include "totals.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Removals { uint removals[]; };
layout(binding = 2) readonly buffer Mixings { uint mixings[]; };
layout(binding = 3) readonly buffer Bonuses { uint bonuses[]; };
layout(push_constant) uniform Push {
    uint counts, r, k, v, decay, a, stride; // of all of these rows
    uint rows_at, rows_stride, decays_at, bonus_at, removal_at, mixing_at, bonuses_at, head_dim;
};

const float LEAST_LENGTH = 1e-12, STRONGEST_DECAY = -0.6065306597126334;

void main() {
    uint row = gl_WorkGroupID.y, head = gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    uint first = head * head_dim, at = row * stride + first, width = gl_NumWorkGroups.x * head_dim;
    uint to = rows_at + row * rows_stride + first;
    precise float squares = 0.0;
    for (uint i = thread; i < head_dim; i += THREADS) {
        precise float removed = number(k + at + i) * uintBitsToFloat(removals[removal_at + first + i]);
        squares = fma(removed, removed, squares);
    }
    precise float factor = 1.0 / max(sqrt(sum_of_threads(squares)), LEAST_LENGTH);
    precise float read = 0.0;
    for (uint i = thread; i < head_dim; i += THREADS) {
        float z = number(k + at + i), rate = sigmoid(number(a + at + i));
        precise float removed = z * uintBitsToFloat(removals[removal_at + first + i]) * factor;
        precise float mix = fma(rate - 1.0, uintBitsToFloat(mixings[mixing_at + first + i]), 1.0);
        precise float key = z * mix, replaced = rate * removed;
        put(to + i, removed);
        put(to + width + i, key);
        put(to + 2u * width + i, replaced);
        put(decays_at + at + i, exp(STRONGEST_DECAY * sigmoid(number(decay + at + i))));
        precise float of_key = number(r + at + i) * uintBitsToFloat(bonuses[bonuses_at + first + i]);
        read = fma(of_key, key, read);
    }
    float bonus = sum_of_threads(read);
    for (uint i = thread; i < head_dim; i += THREADS) {
        precise float of_value = bonus * number(v + at + i);
        put(bonus_at + at + i, of_value);
    }
}
