// state = sigmoid(decay) * state + x[row]; out[row] = state, for the rows of a sequence in order.
//
// A sequence starts from the state in the slot table[sequence][0] (from zero if that is -1), and leaves its last one in
// slot table[sequence][1]. States of a layer are [slots][slot_words]. Groups: (width / 64, sequences).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(binding = 1) readonly buffer Weights { uint weights[]; };
layout(binding = 2) buffer States { uint states[]; };
layout(push_constant) uniform Push {
    uint counts, x, x_stride, out_at, out_stride, width, offsets, table, decay, states_at, slot_words;
};

void main() {
    uint sequence = gl_WorkGroupID.y, column = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    if (sequence >= work[counts + 1u] || column >= width) {
        return;
    }
    float keep = 1.0 / (1.0 + exp(-uintBitsToFloat(weights[decay + column])));
    uint slots = table_at(table) + 2u * sequence, from = work[slots], to = work[slots + 1u];
    precise float state = from == NONE ? 0.0 : uintBitsToFloat(states[states_at + from * slot_words + column]);
    for (uint row = work[offsets + sequence]; row < work[offsets + sequence + 1u]; row++) {
        precise float kept = keep * state;
        state = kept + number(x + row * x_stride + column);
        put(out_at + row * out_stride + column, state);
    }
    states[states_at + to * slot_words + column] = floatBitsToUint(state);
}
