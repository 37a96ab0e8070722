// Keys and values of a layer: [blocks][keys, values][kv_heads][16 positions][head_words].
//
// KV: 0 float32, 1 float16, 2 bfloat16, 3 int8: four codes in a word, then float16 scales of 32 elements, two in a word.

layout(constant_id = 0) const uint KV = 1;

uint code_words(uint head_dim) {
    return KV == 0u ? head_dim : KV == 3u ? (head_dim + 3u) / 4u : (head_dim + 1u) / 2u;
}

uint head_words(uint head_dim) {
    return code_words(head_dim) + (KV == 3u ? (head_dim + 63u) / 64u : 0u);
}
