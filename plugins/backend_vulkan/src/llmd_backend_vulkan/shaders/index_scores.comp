// Scores of the positions that rows see, for their index heads; choose_positions.comp chooses the best ones.
//
// score[t] = sum over heads h of weight[h] * max(q[h] . k[t], 0), in ascending order of elements and of heads: an order
// that depends on nothing. Keys are those of a group of latent vectors (kv_layout.glsl), those of the step included. If
// a vector stands for several tokens, `positions` has the number of the last one that a row sees, -1 if there is none.
//
// A thread has a position, and multiplies its key by HEADS heads at a time. Groups: (any number, rows); those of a row
// share its tiles of 64 positions. Rows begin with `first_row`; one that sees no more than `top_k` positions needs no
// scores. Result: float32 [rows][score_stride].

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint DIMS = 1; // head_dim / 64, rounded up
#include "halves.glsl"
#include "kv_layout.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Pool { uint pool[]; };
layout(push_constant) uniform Push {
    uint counts, q, q_stride, weights, weight_stride, positions, sequences, table, pool_at, block_words;
    uint kv_heads, head_dim, value_kind, vector_bits, heads, first_row, top_k, scores, score_stride;
};
#define POSITION_OF(position) position
#include "attention_keys.glsl"

const uint HEADS = 8;
const uint WIDTH = DIMS * 64u;

shared float query[HEADS * WIDTH];

void load_queries(uint row, uint first) {
    barrier(); // the queries before have been read
    for (uint at = gl_LocalInvocationID.x; at < HEADS * WIDTH; at += 64u) {
        uint head = first + at / WIDTH, element = at % WIDTH;
        bool exists = head < heads && element < head_dim;
        query[at] = exists ? number(q + row * q_stride + head * head_dim + element) : 0.0;
    }
    barrier();
}

// The score with HEADS more heads.
float with_heads(float score, uint row, uint first, uint position, bool is_seen) {
    precise float products[HEADS];
    for (uint h = 0; h < HEADS; h++) {
        products[h] = 0.0;
    }
    for (uint i = 0; i < head_dim && is_seen; i++) {
        float k = key(position, i);
        for (uint h = 0; h < HEADS; h++) {
            products[h] = fma(query[h * WIDTH + i], k, products[h]);
        }
    }
    precise float found = score;
    for (uint h = 0; h < HEADS && first + h < heads; h++) {
        found = fma(number(weights + row * weight_stride + first + h), max(products[h], 0.0), found);
    }
    return found;
}

void main() {
    uint row = first_row + gl_WorkGroupID.y, thread = gl_LocalInvocationID.x;
    if (row >= work[counts] || work[positions + row] + 1u <= top_k) {
        return;
    }
    uint last = work[positions + row];
    table_row = table_at(table) + work[sequences + row] * work[table + 1u];
    words_of_head = head_words(head_dim);
    for (uint tile = gl_WorkGroupID.x; tile * 64u <= last; tile += gl_NumWorkGroups.x) {
        uint position = tile * 64u + thread;
        float score = 0.0;
        for (uint first = 0; first < heads; first += HEADS) {
            load_queries(row, first);
            score = with_heads(score, row, first, position, position <= last);
        }
        if (position <= last) {
            put(scores + gl_WorkGroupID.y * score_stride + position, score);
        }
    }
}
