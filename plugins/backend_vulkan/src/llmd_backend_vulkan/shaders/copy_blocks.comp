// Copy blocks of one layer of a KV group, in order: list is int32 [count][3] (group, source, target).
//
// A thread copies the same words of a block in all copies, so that a block may be the source of a later copy.

#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer List { uint list[]; };
layout(binding = 1) buffer Pool { uint pool[]; };
layout(push_constant) uniform Push { uint count, group, at, block_words; };

void main() {
    uint threads = gl_NumWorkGroups.x * 64u;
    for (uint word = gl_GlobalInvocationID.x; word < block_words; word += threads) {
        for (uint i = 0; i < count; i++) {
            if (list[3 * i] == group) {
                pool[at + list[3 * i + 2] * block_words + word] = pool[at + list[3 * i + 1] * block_words + word];
            }
        }
    }
}
