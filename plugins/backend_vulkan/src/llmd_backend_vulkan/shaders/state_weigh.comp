// How a row changes the matrix of a head: the factors of what is there, and the share of what is written.
//
// Gated delta rule: exp(-rate * softplus(decay + bias)), for each of `of_head` elements of a key or for all; and
// sigmoid(beta). SPACE: t = softplus(decay + bias), at least `least` and at most `most`; exp(-rate * t), and t.
// LOGS: rates are stored as logarithms, else negated. Groups: (heads, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool SPACE = false;
layout(constant_id = 1) const bool LOGS = true;
#include "activations.glsl"
#include "softplus.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Rates { uint rates[]; };
layout(binding = 2) readonly buffer Biases { uint biases[]; };
layout(push_constant) uniform Push {
    uint counts, decay, decay_stride, beta, beta_stride, decays, decays_stride, shares, shares_stride, of_head;
    uint rate_at, bias_at;
    float least, most;
};

void main() {
    uint row = gl_WorkGroupID.y, head = gl_WorkGroupID.x;
    if (row >= work[counts]) {
        return;
    }
    float stored = uintBitsToFloat(rates[rate_at + head]);
    float rate = LOGS ? exp(stored) : -stored;
    for (uint i = gl_LocalInvocationID.x; i < of_head; i += 64u) {
        uint element = head * of_head + i;
        precise float z = number(decay + row * decay_stride + element) + uintBitsToFloat(biases[bias_at + element]);
        precise float time = softplus(z);
        if (SPACE) {
            time = min(max(time, least), most);
        }
        put(decays + row * decays_stride + element, exp(-rate * time));
        if (i == 0u) {
            float share = SPACE ? time : sigmoid(number(beta + row * beta_stride + head));
            put(shares + row * shares_stride + head, share);
        }
    }
}
