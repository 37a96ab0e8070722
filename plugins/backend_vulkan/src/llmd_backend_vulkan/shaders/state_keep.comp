// Write the rows that the convolutions of the next step need to the slot of each sequence: the last ones of the step, or
// of those before it. Groups: (row_width / 64, sequences).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(binding = 1) buffer States { uint states[]; };
layout(push_constant) uniform Push {
    uint counts, offsets, table, states_at, slot_words;
    uint q, k, v, key_stride, value_stride, key_width, row_width, num_taps;
};
#include "state_slots.glsl"

void main() {
    uint sequence = gl_WorkGroupID.y, column = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    if (sequence >= work[counts + 1u] || column >= row_width) {
        return;
    }
    Slots slots = slots_of(sequence);
    uint begin = work[offsets + sequence], rows = work[offsets + sequence + 1u] - begin, kept = num_taps - 1u;
    bool is_value = column >= 2u * key_width;
    uint x = is_value ? v + column - 2u * key_width : column < key_width ? q + column : k + column - key_width;
    // In ascending order, since the rows before may be in the slot that is written.
    for (uint i = 0; i < kept; i++) {
        uint value = 0u;
        if (i + rows >= kept) {
            value = work[x + (begin + i + rows - kept) * (is_value ? value_stride : key_stride)];
        } else if (!slots.is_new) {
            value = states[slots.from + (i + rows) * row_width + column];
        }
        states[slots.to + i * row_width + column] = value;
    }
}
