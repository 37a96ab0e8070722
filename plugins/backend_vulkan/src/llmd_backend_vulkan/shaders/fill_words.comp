// to[to_at + i] = value for i < count.

#version 450
layout(local_size_x = 64) in;
layout(binding = 0) writeonly buffer To { uint to[]; };
layout(push_constant) uniform Push { uint to_at, count, value; };

void main() {
    uint threads = gl_NumWorkGroups.x * 64u;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += threads) {
        to[to_at + i] = value;
    }
}
