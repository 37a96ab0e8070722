// A matrix [rows][columns] in pieces of rows; weights are the words of one piece (matrices.py arranges them).
//
// A row is cut into chunks of what fits in 128 bits. low[row][chunk] has the lower bits of the codes, or the elements;
// high[row][chunk] the upper bits of codes of 3, 5 and 6 bits. Codes are packed from the lowest bits on.
// weight = scale * number + minimum, for groups of GROUP columns (0: the whole row).

layout(constant_id = 0) const uint BITS = 8;   // 2 3 4 5 6 8; 16: float16, 17: bfloat16, 32: float32
layout(constant_id = 1) const uint SCALES = 0; // see scale_of
layout(constant_id = 2) const uint GROUP = 0;
layout(constant_id = 3) const uint ZERO = 0;
layout(constant_id = 4) const uint SIGNED = 0; // bit 0: fine scales have a sign; bit 1: fine minimums
layout(constant_id = 5) const uint CODES = 0;  // see of_code
layout(constant_id = 6) const uint BOOK_0 = 0; // 16 integers of 8 bits
layout(constant_id = 7) const uint BOOK_1 = 0;
layout(constant_id = 8) const uint BOOK_2 = 0;
layout(constant_id = 9) const uint BOOK_3 = 0;
layout(constant_id = 10) const uint OUTLIERS = 0; // 1: four of each group

layout(binding = 1) readonly buffer Weights { uvec4 weights[]; };

const uint LOW = BITS == 3u ? 2u : BITS == 5u || BITS == 6u ? 4u : BITS == 17u ? 16u : BITS;
const uint HIGH = BITS > 8u ? 0u : BITS - LOW;
const uint CHUNK = 128u / LOW;
const uint HIGH_WORDS = HIGH * CHUNK / 32u;
const bool HAS_MINIMUM = SCALES == 2u || SCALES == 5u;

uint weight_word(uint at) { return weights[at >> 2][at & 3u]; }

uint byte_of(uint word, uint index) { return bitfieldExtract(word, int(8u * index), 8); }

float fine_of(uint bits, bool has_sign) { return has_sign ? float(bitfieldExtract(int(bits), 0, 8)) : float(bits); }

// Scale and minimum of a group of a row. `scales` and `coarse` are where those of the row begin, in words.
vec2 scale_of(uint scales, uint coarse, uint group) {
    if (SCALES == 1u) { // float16, two in a word
        uint word = weight_word(scales + group / 2u);
        return vec2(from_half((word >> (16u * (group & 1u))) & 0xffffu), 0.0);
    }
    if (SCALES == 2u) { // float16 scale and minimum in a word
        uint word = weight_word(scales + group);
        return vec2(from_half(word & 0xffffu), from_half(word >> 16));
    }
    if (SCALES == 3u) { // float32
        return vec2(uintBitsToFloat(weight_word(scales + group)), 0.0);
    }
    uint word = weight_word(coarse + group * GROUP / 256u);
    float coarse_scale = from_half(word & 0xffffu), coarse_minimum = from_half(word >> 16);
    if (SCALES == 4u) { // four fine scales in a word
        uint fine = byte_of(weight_word(scales + group / 4u), group & 3u);
        return vec2(coarse_scale * fine_of(fine, (SIGNED & 1u) != 0u), 0.0);
    }
    // fine scale and fine minimum of two groups in a word
    uint pair = weight_word(scales + group / 2u) >> (16u * (group & 1u));
    return vec2(coarse_scale * fine_of(byte_of(pair, 0u), (SIGNED & 1u) != 0u),
                coarse_minimum * fine_of(byte_of(pair, 1u), (SIGNED & 2u) != 0u));
}

// The number of a code of type e4m3fn, by integer operations. Exact: as float32, none is subnormal.
float from_e4m3(uint code) {
    uint magnitude = code & 127u, sign_bit = (code & 128u) << 24;
    float size = magnitude < 8u ? float(magnitude) * 0.001953125 : uintBitsToFloat((magnitude << 20) + (120u << 23));
    return uintBitsToFloat(floatBitsToUint(size) | sign_bit);
}

// What a scale multiplies. A code is, by CODES: 0: an integer plus ZERO; 1: an index into the book; 2: an e4m3fn number.
float of_code(uint code) {
    if (CODES == 1u) {
        uint word = code < 8u ? (code < 4u ? BOOK_0 : BOOK_1) : (code < 12u ? BOOK_2 : BOOK_3);
        return float(bitfieldExtract(int(word), int(8u * (code & 3u)), 8));
    }
    if (CODES == 2u) {
        return from_e4m3(code);
    }
    return float(int(code) - int(ZERO));
}

// Elements 4 i .. 4 i + 3 of a chunk; `high` is where the chunk's upper bits are, in words.
vec4 four(uvec4 low, uint high, uint i) {
    if (LOW == 32u) {
        return uintBitsToFloat(low);
    }
    if (LOW == 16u) {
        uvec2 words = i == 0u ? low.xy : low.zw;
        return BITS == 16u ? vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y))
                           : uintBitsToFloat(uvec4(words.x << 16, words.x & 0xffff0000u, words.y << 16,
                                                   words.y & 0xffff0000u));
    }
    uint bits = low[i * LOW / 8u] >> (4u * i * LOW % 32u);
    uint upper = HIGH == 0u ? 0u : weight_word(high + i * HIGH / 8u) >> (4u * i * HIGH % 32u);
    vec4 found;
    for (uint e = 0; e < 4u; e++) {
        uint code = bitfieldExtract(bits, int(e * LOW), int(LOW));
        if (HIGH != 0u) {
            code |= bitfieldExtract(upper, int(e * HIGH), int(HIGH)) << LOW;
        }
        found[e] = of_code(code);
    }
    return found;
}
