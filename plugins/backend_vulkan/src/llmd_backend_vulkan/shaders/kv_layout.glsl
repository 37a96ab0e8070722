// Keys and values of a layer: [blocks][keys, values][kv_heads][16 positions][head_words]. Latent vectors: [blocks]
// [kv_heads][16 positions, or fewer if a vector stands for several tokens][head_words].
//
// KV: 0 float32, 1 float16, 2 bfloat16, 3 int8: four codes in a word, then float16 scales of 32 elements, two in a word,
// 4 int4: kv_int4.glsl.

layout(constant_id = 0) const uint KV = 1;

uint code_words(uint head_dim) {
    switch (KV) {
    case 0: return head_dim;
    case 3: return (head_dim + 3u) / 4u;
    case 4: return (head_dim + 7u) / 8u;
    }
    return (head_dim + 1u) / 2u;
}

uint head_words(uint head_dim) {
    return code_words(head_dim) + (KV == 3u ? (head_dim + 63u) / 64u : KV == 4u ? (head_dim + 31u) / 32u : 0u);
}
