// Scales and minimums of the groups of a matrix. A lane needs those of the rows g and g + 8 of a tile, for
// both halves of a chunk, at its own columns (weights.cuh).
//
// One level: float16 [tile][group][g][row g, row g + 8], minimums alike.
//
// Two levels: a scale is a coarse one, float16 for each COARSE columns as above, times a fine one; minimums
// alike. The fine ones of a lane for a chunk are four entries, in the order (half 0, row g), (half 0, row g +
// 8), (half 1, row g), (half 1, row g + 8). Each has the low 8 bits in a byte of a word, and the others, if
// any, in 4 or 8 bits of a second one:
//
//   SCALE_BITS  MINIMUM_BITS  byte                             rest
//   8           0             scale + 128
//   4           4             scale, above it the minimum
//   6           6             scale, above it 2 bits of the    the other 4 bits
//                             minimum
//   4           8             minimum                          scale
//   8           8             minimum                          scale
//
// A chunk has the words of all lanes, then their second ones: lanes with the same g share them, or with
// groups of 16 columns those that also have the same t / 2.
//
// FP8 has one level, whose scales are those of the file divided by a float32 scale of the row, [tile][row],
// which multiplies the sums of the row: so they fit float16, whatever the range of the file's.
//
// Definitions: GROUP, columns that share a scale, or 0 for one scale per row; MINIMUM 1 if there are
// minimums; SCALE_BITS, MINIMUM_BITS as above, 0 if there is one level; NEGATED 1 if coarse minimums are the
// negated coarse scales; FP8 1 if codes are numbers of type e4m3fn.
#pragma once

#include "gpu.cuh"

#ifndef SCALE_BITS
#define SCALE_BITS 0
#define MINIMUM_BITS 0
#define NEGATED 0
#endif

constexpr int TILE = 16;
constexpr int CHUNK = 64;
constexpr int COARSE = 256;
constexpr bool TWO_LEVELS = SCALE_BITS > 0;
constexpr bool HAS_SCALES = BITS < 16;
constexpr int GROUP_COLUMNS = TWO_LEVELS ? COARSE : GROUP > 0 ? GROUP : 1;
// Groups in a chunk that a lane has float16 scales of: one for each half if groups are smaller than a chunk.
constexpr int SCALES = !HAS_SCALES ? 0 : GROUP_COLUMNS < CHUNK && GROUP > 0 ? 2 : 1;
constexpr int REST_BITS = TWO_LEVELS ? SCALE_BITS + MINIMUM_BITS - 8 : 0;
constexpr int RECORDS = GROUP == 16 ? 16 : 8;  // of a chunk
constexpr int FINE_BYTES = RECORDS * (4 + REST_BITS / 2);

// In device memory.
struct ScaleArrays {
    const half2* scales;
    const half2* minimums;
    const u8* fine;
    const float* of_rows;
    i32 groups;  // of a row, that have float16 scales
};

// Where a lane reads those of a tile.
struct ScalePlaces {
    const half2* scales;
    const half2* minimums;
    const u8* fine;
    const float* of_rows;
    i32 last_group;
};

// What a lane has of a chunk.
struct Scales {
    half2 scales[SCALES > 0 ? SCALES : 1];
    half2 minimums[SCALES > 0 ? SCALES : 1];
    u32 fine, rest;
};

DEVICE int record_of_lane() { return RECORDS == 16 ? lane_index() / 2 : lane_index() / 4; }

// `block` as in tile_at.
DEVICE ScalePlaces scales_at(const ScaleArrays& arrays, int tile, int chunks, u64 block) {
    const i64 group = (i64)tile * arrays.groups;
    return {arrays.scales + block / sizeof(half2) + group * 8 + lane_index() / 4,
            arrays.minimums + block / sizeof(half2) + group * 8 + lane_index() / 4,
            arrays.fine + block + (i64)tile * chunks * FINE_BYTES,
            arrays.of_rows + block / sizeof(float) + tile * TILE, arrays.groups - 1};
}

// What the sums of a row of the tile are multiplied by.
DEVICE float scale_of_row(const ScalePlaces& places, int row) { return FP8 ? places.of_rows[row] : 1.0f; }

DEVICE void load_scales(Scales& scales, const ScalePlaces& places, int chunk) {
#pragma unroll
    for (int s = 0; s < SCALES; ++s) {
        u32 group = 0;
        if (GROUP > 0 && GROUP_COLUMNS >= CHUNK) {
            group = (u32)(chunk * CHUNK) / GROUP_COLUMNS;
        } else if (GROUP > 0) {
            group = (u32)(chunk * CHUNK + s * (CHUNK / 2) + 8 * (lane_index() % 4)) / GROUP_COLUMNS;
            group = group < places.last_group ? group : places.last_group;  // the padding has no groups
        }
        scales.scales[s] = places.scales[(i64)group * 8];
        if (MINIMUM && !NEGATED) scales.minimums[s] = places.minimums[(i64)group * 8];
    }
    if (TWO_LEVELS) {
        const u8* fine = places.fine + (i64)chunk * FINE_BYTES;
        scales.fine = ((const u32*)fine)[record_of_lane()];
        if (REST_BITS == 4) scales.rest = ((const u16*)(fine + RECORDS * 4))[record_of_lane()];
        if (REST_BITS == 8) scales.rest = ((const u32*)(fine + RECORDS * 4))[record_of_lane()];
    }
}

// The integers in the low bits of both halves of a word, as float16.
template <int zero>
DEVICE half2 to_integers(u32 bits) {
    return subtract(bits | 0x64006400u, 0x64006400u + zero * 0x10001u);  // 0x6400 + n is 1024 + n
}

// The byte of the entries of row g and row g + 8, 16 bits apart.
DEVICE u32 bytes_of(u32 word, int half) { return pick_bytes(word, 0, half ? 0x4342 : 0x4140); }

// The rest of these entries.
DEVICE u32 rest_of(const Scales& scales, int half) {
    if (REST_BITS == 8) return bytes_of(scales.rest, half);
    return (scales.rest | scales.rest << 12) >> 8 * half & 0x000f000fu;
}

// The fine scales of rows g and g + 8 in half a chunk, as integers.
DEVICE half2 fine_scales_of(const Scales& scales, int half) {
    if (MINIMUM_BITS == 0) return to_integers<128>(bytes_of(scales.fine, half));
    if (MINIMUM_BITS == 8) return to_integers<0>(rest_of(scales, half));
    return to_integers<0>(bytes_of(scales.fine, half) & (SCALE_BITS == 6 ? 0x003f003fu : 0x000f000fu));
}

// The fine minimums, alike.
DEVICE half2 fine_minimums_of(const Scales& scales, int half) {
    const u32 bytes = bytes_of(scales.fine, half);
    if (MINIMUM_BITS == 8) return to_integers<0>(bytes);
    if (MINIMUM_BITS == 6) return to_integers<0>((bytes >> 6 & 0x00030003u) | rest_of(scales, half) << 2);
    return to_integers<0>(bytes >> 4 & 0x000f000fu);
}

// The float16 scales and minimums of rows g and g + 8 in half a chunk: coarse ones, if there are two levels.
DEVICE half2 coarse_scales_of(const Scales& scales, int half) { return scales.scales[SCALES > 1 ? half : 0]; }
DEVICE half2 coarse_minimums_of(const Scales& scales, int half) {
    return NEGATED ? scales.scales[0] ^ 0x80008000u : scales.minimums[SCALES > 1 ? half : 0];
}

// Scales of rows g and g + 8 in half a chunk, rounded to float16.
DEVICE half2 scales_of(const Scales& scales, int half) {
    const half2 coarse = coarse_scales_of(scales, half);
    return TWO_LEVELS ? multiply(fine_scales_of(scales, half), coarse) : coarse;
}

// Minimums, alike.
DEVICE half2 minimums_of(const Scales& scales, int half) {
    const half2 coarse = coarse_minimums_of(scales, half);
    return TWO_LEVELS ? multiply(fine_minimums_of(scales, half), coarse) : coarse;
}

// What integers of half a chunk are multiplied by, and what is added, for row g and row g + 8; each twice.
struct Factors {
    half2 scales[2], minimums[2];
};

DEVICE Factors factors_of(const Scales& scales, int half) {
    Factors factors = {};
    if (!HAS_SCALES) return factors;
    const half2 of_rows = scales_of(scales, half);
    factors.scales[0] = pick_bytes(of_rows, 0, 0x1010), factors.scales[1] = pick_bytes(of_rows, 0, 0x3232);
    if (!MINIMUM) return factors;
    const half2 least = minimums_of(scales, half);
    factors.minimums[0] = pick_bytes(least, 0, 0x1010), factors.minimums[1] = pick_bytes(least, 0, 0x3232);
    return factors;
}
