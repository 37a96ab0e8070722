// Keys and values of causal attention, as kv_layout.glsl stores them.
//
// `value_kind` is 1, or 0 if values are the first elements of keys. A block has 2^vector_bits positions: 16, or fewer if
// a vector stands for several tokens. The includer declares the push constants that are named here, sets `table_row` and
// `words_of_head`, and defines POSITION_OF: the position that a key is read at.

#include "kv_int4.glsl"

uint table_row, words_of_head;

float stored(uint at, uint element) {
    switch (KV) {
    case 0: return uintBitsToFloat(pool[at + element]);
    case 1: return from_half((pool[at + element / 2u] >> (16u * (element & 1u))) & 0xffffu);
    case 2: return uintBitsToFloat((pool[at + element / 2u] >> (16u * (element & 1u))) << 16);
    case 4: {
        uint word = pool[at + code_words(head_dim) + element / 32u];
        uint upper = (pool[at + element / 8u] >> (4u * (element & 7u))) & 15u;
        return level_of(code_of(upper, word, element & 31u)) * (scale_of(word >> 24) / 64.0);
    }
    }
    float code = float(bitfieldExtract(int(pool[at + element / 4u]), int(8u * (element & 3u)), 8));
    uint group = element / 32u;
    uint scales = pool[at + code_words(head_dim) + group / 2u];
    return code * from_half((scales >> (16u * (group & 1u))) & 0xffffu);
}

uint place(uint position, uint kind) {
    uint head = gl_WorkGroupID.x % kv_heads;
    uint at = POSITION_OF(position);
    uint block = work[table_row + (at >> vector_bits)], before = (kind * kv_heads + head) << vector_bits;
    return pool_at + block * block_words + (before + (at & ((1u << vector_bits) - 1u))) * words_of_head;
}

// Whether rows [first, first + count) are rows of one sequence, which then see the same keys but for the last ones.
bool shares_keys(uint first, uint count) {
    return first + count <= work[counts] && work[sequences + first] == work[sequences + first + count - 1u];
}

// With int4, heads of odd positions are negated.
float signed_at(uint position, float x) { return KV == 4u && (position & 1u) == 1u ? -x : x; }

float key(uint position, uint element) { return signed_at(position, stored(place(position, 0u), element)); }
float value(uint position, uint element) { return signed_at(position, stored(place(position, value_kind), element)); }
