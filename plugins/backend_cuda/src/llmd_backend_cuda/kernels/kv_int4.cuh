// Keys and values in codes of 5 bits, of which points of a lattice need 4 3/4 (docs/ops.md, "int4").
//
// The heads are rotated (kv_hadamard.cuh), and negated at odd positions. Each slab of a position has a word:
// of the codes of its elements e, the lowest bits of e = 0, 2, .. 14, those of 16, 18, .. 30, those of 1, 3,
// .. 15, and the scale, the 8 bits below the sign of a float16. The lowest bits of 17, 19, .. 31 follow from
// the others.
//
//   keys    [p][t][s] words: of the dimensions 32s + 8t to 32s + 8t + 7, the upper 4 bits of the codes of the
//           pair 2i, 2i + 1 at the bits 4i and 4i + 16; then [p][s] words as above
//   values  [unit][g][p/4] words: of the position p, byte p%4 has the upper 4 bits of the codes of the
//           dimensions 16 unit + 2g and, above them, 16 unit + 2g + 1; then [s][p] words as above
//
// from  Conway & Sloane 1982, "Fast Quantizing and Decoding Algorithms for Lattice Quantizers and Codes"
#pragma once

constexpr int KEY_WORDS_AT = BLOCK_LEN * DIM / 2;
constexpr int VALUES_AT = KEY_WORDS_AT + BLOCK_LEN * SLABS * 4;
constexpr int VALUE_WORDS_AT = VALUES_AT + BLOCK_LEN * DIM / 2;
constexpr int HEAD_BYTES = VALUE_WORDS_AT + BLOCK_LEN * SLABS * 4;

constexpr u32 LARGEST_SCALE = 0xf0;  // of which the outermost level is a float16
constexpr float UNIT = 64.0f;        // levels are integers in units of the scale / 64
constexpr float LOWEST = -120.0f, HIGHEST = 127.0f;
constexpr float REACH = 255.0f;  // elements are clamped to this
constexpr int SCALES_TRIED = 3;

// The levels of two codes, in units of the scale. They are at the bits 2 and 18 of `codes`, so that 256.0 has
// them as its integers. With v = code - 15.25, a level is v (a + b v^2), rounded to 64ths by the addition of
// a float16 that has no smaller ones; a and b are chosen so that all 32 are llmd.api.kv.KV_BOOK / 64.
DEVICE half2 levels_of(u32 codes) {
    const half2 v = subtract(codes | 0x5c005c00u, 0x5c3d5c3du);
    const half2 slope = multiply_add(multiply(v, v), 0x0aa80aa8u, 0x2cd82cd8u);
    return subtract(multiply_add(v, slope, 0x4e004e00u), 0x4e004e00u);
}

// The lowest bits of all codes of a slab: those of even elements, above them those of odd ones.
DEVICE u32 low_bits_of(u32 word) {
    const u32 last = word ^ word >> 8 ^ word >> 16;  // even sums of e, e + 1, e + 16 and e + 17
    return pick_bytes(word, last, 0x4210);
}

// The scale of a slab as a float16.
DEVICE u32 scale_of(u32 word) { return word >> 17 & 0x7f80; }

DEVICE u32 shifted(u32 word, int left) { return left > 0 ? word << left : word >> -left; }

// Storing

DEVICE float level_of(int code) { return first_of(levels_of((u32)code << 2)) * UNIT; }

DEVICE float square_to(float y, int code) {
    const float distance = y - level_of(code);
    return distance * distance;
}

// The nearest code of a number in units of levels, the lower one of two.
DEVICE int nearest_code(float y) {
    int code = 0;
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2) {
        const int above = code + step;
        if (2.0f * y > level_of(above - 1) + level_of(above)) code = above;
    }
    return code;
}

// The code of an element of a slab, and the squared error of it.
struct Point {
    int code;
    float square;
};

// Round the element of each lane to the lattice. Squares are integers below 2^24.
DEVICE Point round_to_lattice(float x, u32 scale) {
    const int lane = lane_index();
    const float step = from_half((u16)(scale << 7)) / UNIT;
    const float inverse = step > 0.0f ? 1.0f / step : 0.0f;
    const float y = fminf(fmaxf(rintf(x * inverse), -REACH), REACH);
    const int code = nearest_code(y);
    const bool up = code == 0 || (code < 31 && square_to(y, code + 1) < square_to(y, code - 1));
    const int other = up ? code + 1 : code - 1;
    const float square = square_to(y, code), detour = square_to(y, other) - square;
    // One element of e, e + 1, e + 16 and e + 17 moves: that with the least detour, the first one if equal.
    const float rank = detour * 4.0f + (float)(lane % 2 + lane / 16 * 2);
    float first = fminf(rank, shuffle_xor(rank, 1));
    first = fminf(first, shuffle_xor(first, 16));
    i32 sum = code + shuffle_xor((i32)code, 1);
    sum += shuffle_xor(sum, 16);
    const bool moves = sum % 2 == 1 && rank == first;
    return {moves ? other : code, moves ? square + detour : square};
}

// The even bits of a word, in its lower half.
DEVICE u32 even_bits(u32 word) {
    word &= 0x55555555u;
    word = (word | word >> 1) & 0x33333333u;
    word = (word | word >> 2) & 0x0f0f0f0fu;
    word = (word | word >> 4) & 0x00ff00ffu;
    return (word | word >> 8) & 0xffffu;
}

// Store element 32 * slab + lane of a rotated key or value; all lanes of a warp take part. Elements beyond
// the head repeat its last one.
DEVICE void store_slab(u8* head, bool is_key, int position, int slab, float x) {
    const int lane = lane_index();
    const float widest = fmaxf(warp_max(x) / HIGHEST, -warp_max(-x) / LOWEST);
    const u32 least = ((to_half(widest * UNIT) & 0x7fffu) + 64) >> 7;
    Point best = {0, 0.0f};
    u32 scale = 0;
    float least_error = infinity();
#pragma unroll 1
    for (u32 i = 0; i < SCALES_TRIED; ++i) {
        const u32 tried = least + i < LARGEST_SCALE ? least + i : LARGEST_SCALE;
        const Point point = round_to_lattice(x, tried);
        const float wide = from_half((u16)(tried << 7));
        const float error = warp_sum(point.square) * wide * wide;
        if (error < least_error) best = point, scale = tried, least_error = error;
    }
    const u32 low = ballot(best.code & 1), odd = even_bits(low >> 1) & 0xff;
    const u32 word = even_bits(low) | odd << 16 | scale << 24;
    u32 upper = (u32)best.code >> 1;
    if (is_key) {
        upper <<= lane % 8 / 2 * 4 + lane % 2 * 16;
        for (int lanes = 1; lanes < 8; lanes *= 2) upper |= shuffle_xor(upper, lanes);
        if (lane % 8 == 0) ((u32*)head)[(position * 4 + lane / 8) * SLABS + slab] = upper;
        if (lane == 0) ((u32*)(head + KEY_WORDS_AT))[position * SLABS + slab] = word;
    } else {
        upper |= shuffle_xor(upper, 1) << 4;
        const int unit = slab * 2 + lane / 16;
        if (lane % 2 == 0)
            head[VALUES_AT + unit * 128 + (lane % 16 / 2 * 4 + position / 4) * 4 + position % 4] = upper;
        if (lane == 0) ((u32*)(head + VALUE_WORDS_AT))[slab * BLOCK_LEN + position] = word;
    }
}

// Reading

template <int count>
DEVICE void read_words(u32 (&words)[count], const u8* from) {
#pragma unroll
    for (int n = 0; n < count; n += count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1) {
        if (count % 4 == 0) {
            const Words4 w = *(const Words4*)(from + n * 4);
            words[n] = w.x, words[(n + 1) % count] = w.y, words[(n + 2) % count] = w.z,
            words[(n + 3) % count] = w.w;
        } else if (count % 2 == 0) {
            const Words2 w = *(const Words2*)(from + n * 4);
            words[n] = w.x, words[(n + 1) % count] = w.y;
        } else {
            words[n] = *(const u32*)(from + n * 4);
        }
    }
}

// What a lane reads of the keys of a block; see kv_layout.cuh.
struct Keys {
    u32 upper[2][SLABS];
    u32 word[2][SLABS];

    DEVICE void load(const u8* head, i64 at) {
        const int lane = lane_index();
        for (int j = 0; j < 2; ++j) {
            const int position = key_position(lane / 4, j);
            read_words(upper[j], head + at + (position * 4 + lane % 4) * SLABS * 4);
            read_words(word[j], head + at + KEY_WORDS_AT + position * SLABS * 4);
        }
    }

    DEVICE void words(u32 (&first)[2], u32 (&second)[2], int s, int j) const {
        const int lane = lane_index();
        const half2 scale = twice((u16)(scale_of(word[j][s]) | lane / 4 % 2 << 15));
        const u32 low = low_bits_of(word[j][s]) >> lane % 4 * 4;
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            const u32 codes =
                (shifted(upper[j][s], 3 - 4 * pair) & 0x00780078u) | (shifted(low, 2 - pair) & 0x00040004u);
            u32& to = pair < 2 ? first[pair % 2] : second[pair % 2];
            to = multiply(levels_of(codes), scale);
        }
    }
};

template <int count>
struct Values {
    u32 upper[count];
    Words4 word;  // of the positions 4t to 4t + 3
    i32 first;    // unit

    DEVICE void load(const u8* head, i64 at, int unit) {
        if (unit * 16 >= DIM) unit = 0;
        first = unit;
        const int lane = lane_index();
        const u8* from = head + VALUES_AT + unit * 128 + lane * 4;
#pragma unroll
        for (int n = 0; n < count; ++n) upper[n] = *(const u32*)(from + at + n * 128);
        word = *(const Words4*)(head + at + VALUE_WORDS_AT + (unit / 2 * BLOCK_LEN + lane % 4 * 4) * 4);
    }

    // The `b` words of value tile j of a unit.
    DEVICE void words(u32 (&b)[2], int n, int j) const {
        b[0] = two_positions(pick_bytes(upper[n], 0, 0x4140), word.x, word.y, n, j);
        b[1] = two_positions(pick_bytes(upper[n], 0, 0x4342), word.z, word.w, n, j);
    }

    // Dimension j of the lane's two dimensions of a unit, at an even position and the next one.
    DEVICE half2 two_positions(u32 both, u32 even, u32 odd, int n, int j) const {
        const int place = lane_index() / 4 + (first + n) % 2 * 8;
        const u32 low =
            pick_bytes(low_bits_of(even) >> place, low_bits_of(odd) >> place, j ? 0x6662 : 0x4440);
        const u32 codes = (shifted(both, j ? -1 : 3) & 0x00780078u) | (low << 2 & 0x00040004u);
        const half2 scales = scale_of(even) | scale_of(odd) << 16 | 0x80000000u;
        return multiply(levels_of(codes), scales);
    }
};
