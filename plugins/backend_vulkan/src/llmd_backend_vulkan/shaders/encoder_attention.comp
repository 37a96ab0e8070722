// Attention of a row to all rows of its sequence in the step: out = sum over t of softmax(q . k[t] * scale) v[t].
//
// Groups: (heads, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "activations.glsl"
#include "work.glsl"
layout(push_constant) uniform Push {
    uint counts, q, k, v, out_at, stride, sequences, offsets, head_dim;
    float scale;
};

float key(uint row, uint element) { return number(k + row * stride + gl_WorkGroupID.x * head_dim + element); }
float value(uint row, uint element) { return number(v + row * stride + gl_WorkGroupID.x * head_dim + element); }

#include "attention_span.glsl"

void main() {
    uint row = gl_WorkGroupID.y, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    uint in_row = row * stride + gl_WorkGroupID.x * head_dim;
    load_query(q + in_row, head_dim, 1u);
    begin_span();
    barrier();
    uint sequence = work[sequences + row], end = work[offsets + sequence + 1u];
    for (uint first = work[offsets + sequence]; first < end; first += 64u) {
        add_positions(first, min(first + 64u, end), head_dim, head_dim, scale, 0.0);
    }
    for (uint i = 0; i < DIMS; i++) {
        if (i * 64u + thread < head_dim) {
            precise float result = sums[0][i] / totals[0];
            put(out_at + in_row + i * 64u + thread, result);
        }
    }
}
