// edited = raw, or minus infinity where the mask of the row does not allow the id. Groups: (vocab / 1024, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 128) in;
#include "work.glsl"
#include "outputs.glsl"
layout(binding = 1) readonly buffer Masks { uint masks[]; }; // [masked rows][vocab / 32]
layout(push_constant) uniform Push { uint selection, raw, edited, stride, vocab; };

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[selection]) {
        return;
    }
    uint mask = work[selection + HEADER_WORDS + row * ROW_WORDS + MASK];
    uint first = gl_WorkGroupID.x * PART;
    for (uint id = first + gl_LocalInvocationID.x; id < min(first + PART, vocab); id += THREADS) {
        bool is_allowed =
            mask == NONE || ((masks[mask * ((vocab + 31u) / 32u) + id / 32u] >> (id & 31u)) & 1u) != 0u;
        work[edited + row * stride + id] = is_allowed ? work[raw + row * stride + id] : NO_LOGIT;
    }
}
