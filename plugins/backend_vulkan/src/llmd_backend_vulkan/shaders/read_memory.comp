// Read memory, to measure how fast that is. What is written depends on all of it, so that no read is left out.

#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer From { uvec4 from[]; };
layout(binding = 1) writeonly buffer To { uint to[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
    uint threads = gl_NumWorkGroups.x * 64u;
    uvec4 sum = uvec4(0);
    for (uint i = gl_GlobalInvocationID.x; i < count; i += threads) {
        sum ^= from[i];
    }
    uint word = sum.x ^ sum.y ^ sum.z ^ sum.w;
    if (word == 0x9e3779b9u) {
        to[0] = word;
    }
}
