// How a block of the KV memory stores the keys and values of 16 positions, and how lanes read them.
//
// A block of a KV group is [layer of the group][key-value head][keys, values]. Here, p is a position within
// the block, d a dimension, DIM the head dimension padded with zeros to whole slabs of 32 dimensions, and s a
// slab.
//
//   float16   keys    [p][DIM] halves
//             values  VALUE(p, d) halves, where VALUE(p, d) = ((d/2)*4 + p/4)*8 + (d%2)*4 + p%4
//   int8      keys    [p][DIM] bytes, code + 128, then [p][SCALES] halves, the scale of each slab
//             values  VALUE(p, d) bytes, code + 128, then [s][p] halves
//   int4      see kv_int4.cuh
//   latent    keys only, as float16: the first VALUE_DIM dimensions of a key are the value
//   split     keys only: the float16 of the keys, then in the same order those of what is left of a float32
//
// With a STRIDE, a latent vector stands for as many positions, and a block has fewer vectors: p is a vector
// then. Such vectors, and those at chosen positions, are read one by one (SCATTERED).
//
// With g = lane / 4 and t = lane % 4, a lane reads the dimensions 32s + 8t to 32s + 8t + 7 of a key: they are
// the `b` words of two tiles of multiply_tile, if queries have the same order of dimensions. Column n of key
// tile j is position 4(n/2) + n%2 + 2j, so that the scores of a lane are those of the positions 4t to 4t + 3:
// as float16, they are the `a` words of a product with values. Of the values of unit i, which are the
// dimensions 16i to 16i + 15, a lane reads the dimensions 16i + 2g and 16i + 2g + 1 of these positions:
// column n of value tile j is dimension 16i + 2n + j.
//
// What is stored is always a finite float16 when it is read, also before it is written: positions that a row
// does not see are multiplied by 0.
//
// Macros: HEAD_DIM, at most 576; KV_DTYPE, one of the numbers below; LATENT, 1 for latent vectors, with
// VALUE_DIM; CHOSEN, 1 if latent vectors are read at chosen positions; STRIDE, positions for each latent
// vector.
#pragma once

#include "kv_memory.cuh"

#define KV_F16 0
#define KV_BF16 1  // rounded to bfloat16 when they are stored, then stored as float16
#define KV_INT8 2
#define KV_INT4 3
#define KV_SPLIT 4  // index keys in float32

#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#ifndef KV_DTYPE
#define KV_DTYPE KV_F16
#endif
#ifndef LATENT
#define LATENT 0
#define VALUE_DIM HEAD_DIM
#endif
#ifndef CHOSEN
#define CHOSEN 0
#endif
#ifndef STRIDE
#define STRIDE 1
#endif
#define SCATTERED (CHOSEN || STRIDE > 1)

constexpr int VECTORS = STRIDE < BLOCK_LEN ? BLOCK_LEN / STRIDE : 1;  // of a head in a block
constexpr int SLAB = 32;                                              // dimensions that share a scale
constexpr int SLABS = (HEAD_DIM + SLAB - 1) / SLAB;
constexpr int DIM = SLABS * SLAB;
constexpr int VALUE_SLABS = (VALUE_DIM + SLAB - 1) / SLAB;
constexpr int PADDED_VALUE_DIM = VALUE_SLABS * SLAB;
constexpr int SCALES = (SLABS + 1) / 2 * 2;  // of a key in int8, with padding
// Whether heads are rotated before they are stored: queries and results are rotated as well then.
constexpr bool ROTATED = KV_DTYPE == KV_INT4;

// Bytes of the keys of a block and head, where its values begin, and bytes of both.
#if KV_DTYPE == KV_INT8
constexpr int KEY_SCALES_AT = BLOCK_LEN * DIM;
constexpr int VALUES_AT = KEY_SCALES_AT + BLOCK_LEN * SCALES * 2;
constexpr int VALUE_SCALES_AT = VALUES_AT + BLOCK_LEN * DIM;
constexpr int HEAD_BYTES = VALUE_SCALES_AT + SLABS * BLOCK_LEN * 2;
#elif KV_DTYPE != KV_INT4
constexpr int VALUES_AT = VECTORS * DIM * 2;
constexpr int REST_AT = VALUES_AT;  // of what is left of a key in float32
constexpr int HEAD_BYTES = LATENT && KV_DTYPE != KV_SPLIT ? VALUES_AT : 2 * VALUES_AT;
#endif

// The position in its block of column n of key tile j.
DEVICE int key_position(int n, int j) { return n / 2 * 4 + n % 2 + 2 * j; }

#if KV_DTYPE == KV_INT4
#include "kv_int4.cuh"
#endif

// The number of the last vector that a row at a position sees; -1: none.
DEVICE int last_vector(int position) { return (position + 1) / STRIDE - 1; }

// Where the keys and values of a head begin in block 0.
DEVICE u8* head_of(const KVMemory& memory, int kv_head) {
    return memory.blocks + memory.layer_at + (i64)kv_head * HEAD_BYTES;
}

DEVICE int key_index(int position, int dim) { return position * DIM + dim; }
// Bytes between the first vector of block 0 and a vector of a sequence with these blocks.
DEVICE i64 vector_at(const KVMemory& memory, const i32* table, int number) {
    return table[number / VECTORS] * memory.block_bytes + key_index(number % VECTORS, 0) * 2;
}
DEVICE int value_index(int position, int dim) {
    return (dim / 2 * 4 + position / 4) * 8 + dim % 2 * 4 + position % 4;
}

#if KV_DTYPE == KV_INT8

constexpr float MOST_SCALE = 515.5f;  // 127 times that is a float16

// Store dimension 32 * slab + lane of a key or value; all lanes of a warp take part. Dimensions beyond the
// head are 0.
DEVICE void store_slab(u8* head, bool is_key, int position, int slab, float x) {
    const float largest = warp_max(fabsf(x));
    const u16 scale = to_half(fminf(largest / 127.0f, MOST_SCALE));
    const float wide = from_half(scale);
    const float inverse = wide > 0.0f ? 1.0f / wide : 0.0f;
    const float code = fminf(fmaxf(rintf(x * inverse), -127.0f), 127.0f);
    const int dim = slab * SLAB + lane_index();
    const int at = is_key ? key_index(position, dim) : VALUES_AT + value_index(position, dim);
    head[at] = (u8)((int)code + 128);
    if (lane_index() == 0) {
        u8* scales = head + (is_key ? KEY_SCALES_AT + (position * SCALES + slab) * 2
                                    : VALUE_SCALES_AT + (slab * BLOCK_LEN + position) * 2);
        *(u16*)scales = scale;
    }
}

#elif KV_DTYPE != KV_INT4

DEVICE float rounded_to_bfloat16(float x) {
    const u32 bits = bits_of(x);
    return float_of((bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u);
}

DEVICE void store_slab(u8* head, bool is_key, int position, int slab, float x) {
    const int dim = slab * SLAB + lane_index();
    if (KV_DTYPE == KV_BF16) x = rounded_to_bfloat16(x);
    u16* to = is_key ? (u16*)head + key_index(position, dim)
                     : (u16*)(head + VALUES_AT) + value_index(position, dim);
    *to = to_half(x);
    if (KV_DTYPE == KV_SPLIT) to[REST_AT / 2] = to_half(x - from_half(*to));
}

#endif

#if KV_DTYPE == KV_INT8

// Four codes as float16, without their scales.
DEVICE void to_halves(half2 (&halves)[2], u32 codes) {
    // The bits 0x6400 + n are the float16 1024 + n.
    halves[0] = subtract(pick_bytes(codes, 0x64646464u, 0x4140), 0x64806480u);
    halves[1] = subtract(pick_bytes(codes, 0x64646464u, 0x4342), 0x64806480u);
}

// What a lane reads of the keys of a block, `at` bytes behind block 0 where `head` points. These are not
// loads of read_once: the compiler would move them behind a barrier, to where they are used.
struct Keys {
    Words2 codes[SLABS][2];
    u32 scales[SCALES / 2][2];

    DEVICE void load(const u8* head, i64 at) {
        const int lane = lane_index(), position = key_position(lane / 4, 0);
        const u8* of_codes = head + key_index(position, lane % 4 * 8);
        const u8* of_scales = head + KEY_SCALES_AT + position * SCALES * 2;
        for (int j = 0; j < 2; ++j) {
#pragma unroll
            for (int s = 0; s < SLABS; ++s) {
                codes[s][j] = *(const Words2*)(of_codes + at + key_index(2 * j, s * SLAB));
            }
#pragma unroll
            for (int n = 0; n < SCALES / 2; ++n) {
                scales[n][j] = *(const u32*)(of_scales + at + (2 * j * SCALES + n * 2) * 2);
            }
        }
    }

    // The `b` words of both tiles of a slab.
    DEVICE void words(u32 (&first)[2], u32 (&second)[2], int s, int j) const {
        const half2 scale = twice((u16)(scales[s / 2][j] >> s % 2 * 16));
        to_halves(first, codes[s][j].x);
        to_halves(second, codes[s][j].y);
        for (int i = 0; i < 2; ++i) {
            first[i] = multiply(first[i], scale);
            second[i] = multiply(second[i], scale);
        }
    }
};

// What a lane reads of `count` units of the values of a block, all in one slab. Units beyond the head are not
// used: they are those of unit 0.
template <int count>
struct Values {
    Words2 codes[count];
    Words2 scales;

    DEVICE void load(const u8* head, i64 at, int unit) {
        if (unit * 16 >= DIM) unit = 0;
        const int lane = lane_index();
        const u8* of_codes = head + VALUES_AT + unit * 256 + lane * 8;
        const u8* of_scales = head + VALUE_SCALES_AT + unit / 2 * 32 + lane % 4 * 8;
#pragma unroll
        for (int n = 0; n < count; ++n) codes[n] = *(const Words2*)(of_codes + at + n * 256);
        scales = *(const Words2*)(of_scales + at);
    }

    // The `b` words of value tile j of a unit.
    DEVICE void words(u32 (&b)[2], int n, int j) const {
        to_halves(b, j ? codes[n].y : codes[n].x);
        b[0] = multiply(b[0], scales.x);
        b[1] = multiply(b[1], scales.y);
    }
};

#elif KV_DTYPE != KV_INT4

// As above.
struct Keys {
    Words4 halves[SLABS][2];

    DEVICE void load(const u8* head, i64 at) {
        const int lane = lane_index();
        const u8* from = head + key_index(key_position(lane / 4, 0), lane % 4 * 8) * 2;
#pragma unroll
        for (int s = 0; s < SLABS; ++s) {
            for (int j = 0; j < 2; ++j)
                halves[s][j] = *(const Words4*)(from + at + key_index(2 * j, s * SLAB) * 2);
        }
    }

    // The same for vectors that are scattered: `first` and `second` are the bytes between the first vector of
    // block 0 and those that the lane has in both tiles.
    DEVICE void load(const u8* head, i64 first, i64 second) {
        for (int j = 0; j < 2; ++j) {
            const u8* from = head + (j ? second : first) + lane_index() % 4 * 16;
#pragma unroll
            for (int s = 0; s < SLABS; ++s) halves[s][j] = *(const Words4*)(from + s * SLAB * 2);
        }
    }
    DEVICE void load(const u8* head, const i64* places) {
        const int n = lane_index() / 4;
        load(head, places[key_position(n, 0)], places[key_position(n, 1)]);
    }

    DEVICE void words(u32 (&first)[2], u32 (&second)[2], int s, int j) const {
        first[0] = halves[s][j].x, first[1] = halves[s][j].y;
        second[0] = halves[s][j].z, second[1] = halves[s][j].w;
    }
};

#if LATENT

// As above; `halves` are the lane's two dimensions at its four positions, as keys have them.
template <int count>
struct Values {
    u32 halves[count][4];

    DEVICE void load(const u8* head, i64 at, int unit) {
        if (unit * 16 >= PADDED_VALUE_DIM) unit = 0;
        const u8* from = head + key_index(lane_index() % 4 * 4, unit * 16 + lane_index() / 4 * 2) * 2;
#pragma unroll
        for (int n = 0; n < count; ++n) {
#pragma unroll
            for (int p = 0; p < 4; ++p) halves[n][p] = *(const u32*)(from + at + key_index(p, n * 16) * 2);
        }
    }

    // As for keys.
    DEVICE void load(const u8* head, const i64* places, int unit) {
        if (unit * 16 >= PADDED_VALUE_DIM) unit = 0;
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            const u8* from = head + places[lane_index() % 4 * 4 + p] + (unit * 16 + lane_index() / 4 * 2) * 2;
#pragma unroll
            for (int n = 0; n < count; ++n) halves[n][p] = *(const u32*)(from + n * 32);
        }
    }

    DEVICE void words(u32 (&b)[2], int n, int j) const {
        for (int i = 0; i < 2; ++i)
            b[i] = pick_bytes(halves[n][2 * i], halves[n][2 * i + 1], j ? 0x7632 : 0x5410);
    }
};

#else

// As above.
template <int count>
struct Values {
    Words4 halves[count];

    DEVICE void load(const u8* head, i64 at, int unit) {
        if (unit * 16 >= DIM) unit = 0;
        const u8* from = head + VALUES_AT + unit * 512 + lane_index() * 16;
#pragma unroll
        for (int n = 0; n < count; ++n) halves[n] = *(const Words4*)(from + at + n * 512);
    }

    DEVICE void words(u32 (&b)[2], int n, int j) const {
        b[0] = j ? halves[n].z : halves[n].x;
        b[1] = j ? halves[n].w : halves[n].y;
    }
};

#endif

#endif
