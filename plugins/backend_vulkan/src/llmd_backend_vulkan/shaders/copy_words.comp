// to[to_at + i] = from[from_at + i] for i < count.

#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer From { uint from[]; };
layout(binding = 1) writeonly buffer To { uint to[]; };
layout(push_constant) uniform Push { uint from_at, to_at, count; };

void main() {
    uint threads = gl_NumWorkGroups.x * 64u;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += threads) {
        to[to_at + i] = from[from_at + i];
    }
}
