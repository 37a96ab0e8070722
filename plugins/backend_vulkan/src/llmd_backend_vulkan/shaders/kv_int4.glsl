// Codes of 5 bits, points of a lattice (docs/ops.md, "int4"): the upper 4 bits of the codes, eight in a word; then a word
// for 32 elements e: of their codes, the lowest bits of e = 0 .. 15 and of e = 16, 18, .. 30, and the bits of the scale,
// the 8 below the sign of a float16. The lowest bits of e = 17, 19, .. 31 follow from the others: those of e - 17,
// e - 16, e - 1 and e have an even sum.

const uint LAST_CODE = 31;

// The level of a code in 64ths of the scale: v (a + b v^2) for v = 4 code - 61, rounded, is llmd.api.kv.KV_BOOK.
float level_of(uint code) {
    float v = float(4 * int(code) - 61);
    return roundEven(v * (1.2095238 + v * v * 0.0002031618));
}

// The scale for its 8 bits.
float scale_of(uint bits) { return from_half(bits << 7); }

// The code of element e of 32 from its upper bits and the word of the 32.
uint code_of(uint upper, uint word, uint e) {
    uint low = e < 16u ? word >> e
             : (e & 1u) == 0u ? word >> (8u + e / 2u)
                              : (word >> (7u + (e + 1u) / 2u)) ^ (word >> (e - 17u)) ^ (word >> (e - 16u));
    return upper << 1 | (low & 1u);
}
