// An element of a head becomes silu(bias + sum over j of taps[j] * x[row - num_taps + 1 + j]), with the rows of the
// sequence before the step from its slot. NORMALIZED: the head is then divided by sqrt(its sum of squares + 1e-6), and
// multiplied by `factor`. Groups: (heads, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
const uint THREADS = 64; // of a work group
layout(constant_id = 0) const bool NORMALIZED = false;
layout(constant_id = 1) const bool HAS_BIAS = false;
#include "activations.glsl"
#include "totals.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Taps { uint taps[]; };
layout(binding = 2) readonly buffer Biases { uint biases[]; };
layout(binding = 3) readonly buffer States { uint states[]; };
layout(push_constant) uniform Push {
    uint counts, sequences, offsets, table, states_at, slot_words;
    uint x, x_stride, out_at, out_stride, head_dim, num_taps, tap_at, bias_at;
    uint row_width, first_column; // of what a slot keeps of a row
    float factor;
};
#include "state_slots.glsl"

// `number` is that of the row in its sequence and step.
float convolved(uint row, uint number_of_row, Slots slots, uint column) {
    precise float sum = 0.0;
    for (uint tap = 0; tap < num_taps; tap++) {
        uint back = num_taps - 1u - tap;
        float value = 0.0;
        if (back <= number_of_row) {
            value = number(x + (row - back) * x_stride + column);
        } else if (!slots.is_new) {
            value = uintBitsToFloat(states[slots.from + (number_of_row + tap) * row_width + first_column + column]);
        }
        sum = fma(uintBitsToFloat(taps[tap_at + column * num_taps + tap]), value, sum);
    }
    if (HAS_BIAS) {
        sum = sum + uintBitsToFloat(biases[bias_at + column]);
    }
    return activated(0u, sum, 0.0);
}

void main() {
    uint row = gl_WorkGroupID.y, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    uint sequence = work[sequences + row], first = gl_WorkGroupID.x * head_dim;
    uint number_of_row = row - work[offsets + sequence], to = out_at + row * out_stride + first;
    Slots slots = slots_of(sequence);
    precise float squares = 0.0;
    for (uint i = thread; i < head_dim; i += 64u) {
        float value = convolved(row, number_of_row, slots, first + i);
        squares = fma(value, value, squares);
        put(to + i, value);
    }
    if (!NORMALIZED) {
        return;
    }
    precise float scale = factor / sqrt(sum_of_threads(squares) + 1e-6);
    for (uint i = thread; i < head_dim; i += 64u) { // each thread reads what it has written
        precise float scaled = number(to + i) * scale;
        put(to + i, scaled);
    }
}
