// Change the matrix S [key_dim][value_dim] of a head by the rows of a sequence, one after the other, and read it:
//
// gated delta rule  S = decay S; S = S + outer(k, share * (v - k S)); out = q S
// SPACE             S = decay S; S = S + outer(k, share * v); out = q S + skip * v
//
// A work group has 16 columns of S, which stay in registers. Four threads share a column: thread `part` has every fourth
// row of S, and sums are added from the first part to the last, so that they do not depend on the step.
// Groups: (value_dim / 16, heads, sequences).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool SPACE = false;
layout(constant_id = 1) const uint OWN = 32; // rows of S of a thread: key_dim / 4, rounded up
#include "work.glsl"
layout(binding = 1) buffer States { uint states[]; };
layout(binding = 2) readonly buffer Skips { uint skips[]; };
layout(push_constant) uniform Push {
    uint counts, offsets, table, states_at, slot_words, matrices_at;
    uint mixed, mixed_stride, decays, decays_stride, shares, shares_stride, out_at, out_stride;
    uint key_heads, key_dim, value_dim, of_head, is_tiled, skip_at;
};
#include "state_slots.glsl"

const uint COLUMNS = 16, PARTS = 4, MOST_KEYS = 4u * OWN;

shared float query[MOST_KEYS], key[MOST_KEYS], decay[MOST_KEYS];
shared float found_sums[64], out_sums[64];
float state[OWN];

uint key_of(uint n) { return n * PARTS + gl_LocalInvocationID.x / COLUMNS; }

void load_row(uint row, uint head, uint key_head) {
    uint of_row = mixed + row * mixed_stride + key_head * key_dim;
    uint of_decays = decays + row * decays_stride + head * of_head;
    for (uint i = gl_LocalInvocationID.x; i < MOST_KEYS; i += 64u) {
        bool exists = i < key_dim;
        query[i] = exists ? number(of_row + i) : 0.0;
        key[i] = exists ? number(of_row + key_heads * key_dim + i) : 0.0;
        decay[i] = exists ? number(of_decays + (of_head == 1u ? 0u : i)) : 0.0;
    }
}

float sum_of_parts(float first, float second, float third, float fourth) {
    precise float sum = ((first + second) + third) + fourth;
    return sum;
}

void run_row(uint row, uint head, uint column, bool exists) {
    uint thread = gl_LocalInvocationID.x, place = thread % COLUMNS;
    precise float found = 0.0;
    for (uint n = 0; n < OWN; n++) {
        precise float kept = state[n] * decay[key_of(n)];
        state[n] = kept;
        found = fma(key[key_of(n)], kept, found);
    }
    float share = number(shares + row * shares_stride + head);
    uint values = mixed + row * mixed_stride + 2u * key_heads * key_dim + head * value_dim;
    float value = exists ? number(values + column) : 0.0;
    precise float change = value;
    if (!SPACE) {
        found_sums[thread] = found;
        barrier();
        change = value - sum_of_parts(found_sums[place], found_sums[place + COLUMNS], found_sums[place + 2u * COLUMNS],
                                      found_sums[place + 3u * COLUMNS]);
    }
    change = change * share;
    precise float sum = 0.0;
    for (uint n = 0; n < OWN; n++) {
        precise float written = fma(key[key_of(n)], change, state[n]);
        state[n] = written;
        sum = fma(query[key_of(n)], written, sum);
    }
    out_sums[thread] = sum;
    barrier(); // queries and keys have been read as well
    if (thread < COLUMNS && exists) {
        precise float result = sum_of_parts(out_sums[place], out_sums[place + COLUMNS], out_sums[place + 2u * COLUMNS],
                                            out_sums[place + 3u * COLUMNS]);
        if (SPACE) {
            result = fma(uintBitsToFloat(skips[skip_at + head]), value, result);
        }
        put(out_at + row * out_stride + head * value_dim + column, result);
    }
}

void main() {
    uint sequence = gl_WorkGroupID.z, head = gl_WorkGroupID.y;
    if (sequence >= work[counts + 1u]) {
        return;
    }
    uint column = gl_WorkGroupID.x * COLUMNS + gl_LocalInvocationID.x % COLUMNS;
    bool exists = column < value_dim;
    uint key_head = is_tiled != 0u ? head % key_heads : head / (gl_NumWorkGroups.y / key_heads);
    Slots slots = slots_of(sequence);
    uint first = matrices_at + head * key_dim * value_dim + column;
    for (uint n = 0; n < OWN; n++) {
        bool is_kept = exists && key_of(n) < key_dim && !slots.is_new;
        state[n] = is_kept ? uintBitsToFloat(states[slots.from + first + key_of(n) * value_dim]) : 0.0;
    }
    for (uint row = work[offsets + sequence]; row < work[offsets + sequence + 1u]; row++) {
        load_row(row, head, key_head);
        barrier();
        run_row(row, head, column, exists);
    }
    for (uint n = 0; n < OWN; n++) {
        if (exists && key_of(n) < key_dim) {
            states[slots.to + first + key_of(n) * value_dim] = floatBitsToUint(state[n]);
        }
    }
}
