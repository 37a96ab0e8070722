// to[to_at + i] = from[i] for as many words as the arrays of the step take (step_memory.py): the last of its counts.

#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer From { uint from[]; };
layout(binding = 1) writeonly buffer To { uint to[]; };
layout(push_constant) uniform Push { uint to_at; };

void main() {
    uint threads = gl_NumWorkGroups.x * 64u, count = from[3];
    for (uint i = gl_GlobalInvocationID.x; i < count; i += threads) {
        to[to_at + i] = from[i];
    }
}
