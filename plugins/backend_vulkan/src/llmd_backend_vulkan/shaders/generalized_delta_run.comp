// Change the matrix S [head_dim][head_dim] of a head by the rows of a sequence, one after the other, and read it:
// S = diag(decay) S - outer(put, removed S) + outer(k, v); out = r S, with the rows of generalized_delta_rows.comp.
//
// A work group has 16 columns of S, which stay in registers. Four threads share a column: thread `part` has every fourth
// row of S, and sums are added from the first part to the last, so that they do not depend on the step.
// Groups: (head_dim / 16, heads, sequences).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint OWN = 16; // rows of S of a thread: head_dim / 4, rounded up
#include "work.glsl"
layout(binding = 1) buffer States { uint states[]; };
layout(push_constant) uniform Push {
    uint counts, offsets, table, states_at, slot_words, rows_at, rows_stride, decays_at;
    uint r, v, out_at, stride, head_dim;
};
#include "state_slots.glsl"

const uint COLUMNS = 16, PARTS = 4, MOST_KEYS = 4u * OWN;

shared float query[MOST_KEYS], key[MOST_KEYS], decay[MOST_KEYS], removed[MOST_KEYS], replaced[MOST_KEYS];
shared float found_sums[64], out_sums[64];
float state[OWN];

uint key_of(uint n) { return n * PARTS + gl_LocalInvocationID.x / COLUMNS; }

void load_row(uint row, uint head) {
    uint at = row * stride + head * head_dim, from = rows_at + row * rows_stride + head * head_dim;
    uint width = gl_NumWorkGroups.y * head_dim;
    for (uint i = gl_LocalInvocationID.x; i < MOST_KEYS; i += 64u) {
        bool exists = i < head_dim;
        query[i] = exists ? number(r + at + i) : 0.0;
        decay[i] = exists ? number(decays_at + at + i) : 0.0;
        removed[i] = exists ? number(from + i) : 0.0;
        key[i] = exists ? number(from + width + i) : 0.0;
        replaced[i] = exists ? number(from + 2u * width + i) : 0.0;
    }
}

float sum_of_parts(float first, float second, float third, float fourth) {
    precise float sum = ((first + second) + third) + fourth;
    return sum;
}

void run_row(uint row, uint head, uint column, bool exists) {
    uint thread = gl_LocalInvocationID.x, place = thread % COLUMNS, at = row * stride + head * head_dim + column;
    precise float found = 0.0;
    for (uint n = 0; n < OWN; n++) {
        found = fma(removed[key_of(n)], state[n], found);
    }
    found_sums[thread] = found;
    barrier();
    float taken = sum_of_parts(found_sums[place], found_sums[place + COLUMNS], found_sums[place + 2u * COLUMNS],
                               found_sums[place + 3u * COLUMNS]);
    float value = exists ? number(v + at) : 0.0;
    precise float sum = 0.0;
    for (uint n = 0; n < OWN; n++) {
        precise float kept = state[n] * decay[key_of(n)];
        precise float written = fma(key[key_of(n)], value, kept);
        precise float changed = fma(replaced[key_of(n)], -taken, written);
        state[n] = changed;
        sum = fma(query[key_of(n)], changed, sum);
    }
    out_sums[thread] = sum;
    barrier(); // what the row does has been read as well
    if (thread < COLUMNS && exists) {
        put(out_at + at, sum_of_parts(out_sums[place], out_sums[place + COLUMNS], out_sums[place + 2u * COLUMNS],
                                      out_sums[place + 3u * COLUMNS]));
    }
}

void main() {
    uint sequence = gl_WorkGroupID.z, head = gl_WorkGroupID.y;
    if (sequence >= work[counts + 1u]) {
        return;
    }
    uint column = gl_WorkGroupID.x * COLUMNS + gl_LocalInvocationID.x % COLUMNS;
    bool exists = column < head_dim;
    Slots slots = slots_of(sequence);
    uint first = head * head_dim * head_dim + column;
    for (uint n = 0; n < OWN; n++) {
        bool is_kept = exists && key_of(n) < head_dim && !slots.is_new;
        state[n] = is_kept ? uintBitsToFloat(states[slots.from + first + key_of(n) * head_dim]) : 0.0;
    }
    for (uint row = work[offsets + sequence]; row < work[offsets + sequence + 1u]; row++) {
        load_row(row, head);
        barrier();
        run_row(row, head, column, exists);
    }
    for (uint n = 0; n < OWN; n++) {
        if (exists && key_of(n) < head_dim) {
            states[slots.to + first + key_of(n) * head_dim] = floatBitsToUint(state[n]);
        }
    }
}
