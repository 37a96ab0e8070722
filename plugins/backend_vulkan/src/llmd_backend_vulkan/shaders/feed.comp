// token_ids[row] = tokens[-1 - token_ids[row]] where it is negative: the token of an output row of another step.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "work.glsl"
layout(binding = 1) readonly buffer Tokens { uint tokens[]; };
layout(push_constant) uniform Push { uint counts, token_ids; };

void main() {
    uint row = gl_GlobalInvocationID.x;
    if (row < work[counts] && int(work[token_ids + row]) < 0) {
        work[token_ids + row] = tokens[~work[token_ids + row]];
    }
}
