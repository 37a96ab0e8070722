// out = x[row] + (x[row - 1] - x[row]) * share, with the row of the sequence before the step from its slot.
// Groups: (width / 64, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(binding = 1) readonly buffer Shares { uint shares[]; };
layout(binding = 2) readonly buffer States { uint states[]; };
layout(push_constant) uniform Push {
    uint counts, sequences, offsets, table, states_at, slot_words;
    uint x, x_stride, out_at, out_stride, width, share_at;
};
#include "state_slots.glsl"

void main() {
    uint row = gl_WorkGroupID.y, column = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    if (row >= work[counts] || column >= width) {
        return;
    }
    uint sequence = work[sequences + row];
    Slots slots = slots_of(sequence);
    float before = 0.0, here = number(x + row * x_stride + column);
    if (row > work[offsets + sequence]) {
        before = number(x + (row - 1u) * x_stride + column);
    } else if (!slots.is_new) {
        before = uintBitsToFloat(states[slots.from + column]);
    }
    precise float change = before - here;
    precise float mixed = fma(change, uintBitsToFloat(shares[share_at + column]), here);
    put(out_at + row * out_stride + column, mixed);
}
