// Products of weights and rows of x that are both int8, by tensor cores: 16 weight rows, 8 rows of x, and 32
// columns (a half chunk), of which lane t has those from 8t on.
//
// A chunk is one segment, or it has segments of 32 or 16 columns, which share a scale. The integers of a
// segment are summed exactly, in any order. Then, in float32 and in the order of the segments:
//
//   sum = fma(total * scale_w + minimum_w * (sum of the codes of x), scale_x, sum)
//
// where the second term exists with minimums only, and is added by an fma. In formats of coarse scales and
// int8 weights (NEGATED) the integers are fine scale * code - fine minimum, and scale_w is the coarse scale.
#pragma once

#include "rows_int8.cuh"
#include "weights.cuh"

// Columns of x that share a scale.
constexpr int ACTIVATION_GROUP = TWO_LEVELS ? COARSE : GROUP > 0 ? GROUP : 128;
// Columns of a segment.
constexpr int SEGMENT = NEGATED || GROUP == 0 || GROUP >= CHUNK ? CHUNK : GROUP;
constexpr int SPAN = SEGMENT == CHUNK ? 2 : 1;   // halves of a chunk that are multiplied together
constexpr int SEGMENTS = SEGMENT == 16 ? 2 : 1;  // of a span
constexpr bool ADDS_MINIMUMS = MINIMUM && !NEGATED;

// Totals of a segment begin here: as the bits of a float it is 1.5 * 2^23, and with a total added, below
// 2^22 in absolute value, that float plus the total. So a subtraction makes a float of it.
constexpr i32 TOTAL_ZERO = 0x4b400000;
DEVICE float to_float(i32 total) { return float_of(total) - 12582912.0f; }

// What totals of rows g and g + 8 of a tile are multiplied by in a span, and the minimums.
struct Segments {
    float scales[SEGMENTS][2], minimums[SEGMENTS][2];
};

// Those of the span that begins with a half.
DEVICE Segments segments_of(const Scales& scales, int half) {
    Segments segments;
#pragma unroll
    for (int s = 0; s < SEGMENTS; ++s) {
        const half2 coarse = coarse_scales_of(scales, half);
        segments.scales[s][0] = first_of(coarse), segments.scales[s][1] = second_of(coarse);
        if (ADDS_MINIMUMS) {
            const half2 least = coarse_minimums_of(scales, half);
            segments.minimums[s][0] = first_of(least), segments.minimums[s][1] = second_of(least);
        }
        if (!TWO_LEVELS || NEGATED) continue;
        Scales entries = scales;
        // With segments of 16 columns, a lane has the entries of those that its own columns are in.
        if (SEGMENTS > 1) entries.fine = shuffle(scales.fine, (lane_index() & 28) + 2 * s);
        const half2 fine = fine_scales_of(entries, half);
        segments.scales[s][0] *= first_of(fine), segments.scales[s][1] *= second_of(fine);
        if (ADDS_MINIMUMS) {
            const half2 least = fine_minimums_of(entries, half);
            segments.minimums[s][0] *= first_of(least), segments.minimums[s][1] *= second_of(least);
        }
    }
    return segments;
}

// The fields of two neighbouring pairs of codes, a byte each, in the order of their columns. In a word,
// fields of a pair are 16 bits apart, and the second pair's are `step` bits above the first one's; `odd` says
// in which byte of the lower half the first field is, after `shift`.
DEVICE u32 fields(u32 word, int shift, int step, int odd, u32 mask) {
    return pick_bytes(word >> shift & mask, word >> (shift + step) & mask, odd ? 0x7531 : 0x6420);
}

// The codes of row g (r 0) or g + 8 (r 1) of a lane's first (quad 0) or last four columns of half a chunk.
DEVICE u32 codes_of(const Codes& codes, int half, int r, int quad) {
    u32 bytes;
    if (LOW_BITS == 8) {
        bytes = codes.low[(4 * half + 2 * r + quad) % LOW_WORDS];
    } else if (LOW_BITS == 4) {
        bytes = fields(codes.low[(2 * half + r) % LOW_WORDS], 0, 4, quad, 0x0f0f0f0f);
    } else {
        bytes = fields(codes.low[r % LOW_WORDS], 4 * quad, 2, half, 0x03030303);
    }
    if (HIGH_BITS == 2)
        bytes |= fields(codes.high[HIGH_BITS == 2 ? r : 0], 4 * quad, 2, half, 0x03030303) << LOW_BITS;
    if (HIGH_BITS == 1) bytes |= fields(codes.high[0], 4 * half + 2 * quad, 1, r, 0x01010101) << LOW_BITS;
    return bytes;
}

// The int8 that these codes stand for. Adding 128 to each and toggling the highest bit keeps bytes apart.
DEVICE u32 integers_of(const Codes& codes, int half, int r, int quad) {
    if (BOOK) return entries_of(codes.low[(2 * half + r) % LOW_WORDS] >> 16 * quad) ^ 0x80808080;
    const u32 bytes = codes_of(codes, half, r, quad);
    if (NEGATED) {
        const u32 fine = rest_of(codes.scales, half) >> 16 * r & 0xff;
        const u32 least = bytes_of(codes.scales.fine, half) >> 16 * r & 0xff;
        return bytes * fine + (128 - least) * 0x01010101 ^ 0x80808080;  // fine * code is below 256
    }
    if (ZERO == 0) return bytes;
    return (ZERO == 128 ? bytes : (bytes | 0x80808080) - ZERO * 0x01010101) ^ 0x80808080;
}

// Of a row of x in a span: the scale, and the sums of the codes of each segment.
struct RowSpan {
    float scale, sums[SEGMENTS];
};

DEVICE float sum_of(half2 sums) { return first_of(sums) + second_of(sums); }

DEVICE RowSpan row_span(const u8* scales, int half) {
    const HalfScale* halves = (const HalfScale*)scales;
    RowSpan span = {halves[half].scale, {}};
    if (!ADDS_MINIMUMS) return span;
    if (SEGMENTS > 1) {
        span.sums[0] = first_of(halves[half].sums), span.sums[SEGMENTS - 1] = second_of(halves[half].sums);
    } else {
        span.sums[0] = sum_of(halves[half].sums) + (SPAN > 1 ? sum_of(halves[1].sums) : 0.0f);
    }
    return span;
}

// sums += the products of a span from `half` on, of tiles and 8 rows of x each. `x` is where the lane reads
// the chunk of the first 8 rows; the next 8 are `stride` bytes after them.
template <int tiles, int n_tiles>
DEVICE void multiply_span(float (&sums)[tiles][n_tiles][4], const Codes (&codes)[tiles], int half,
                          const LaneRows& x, int stride) {
    u32 a[tiles][SPAN][4];
    Segments segments[tiles];
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
        segments[tile] = segments_of(codes[tile].scales, half);
#pragma unroll
        for (int i = 0; i < 4 * SPAN; ++i)
            a[tile][i / 4][i % 4] = integers_of(codes[tile], half + i / 4, i % 2, i % 4 / 2);
    }
#pragma unroll
    for (int n = 0; n < n_tiles; ++n) {
        const RowSpan of_x[2] = {row_span(x.scales[0] + n * stride, half),
                                 row_span(x.scales[1] + n * stride, half)};
        Words2 words[SPAN];
#pragma unroll
        for (int i = 0; i < SPAN; ++i)
            words[i] = *(const Words2*)(x.row + n * stride + (half + i) * (CHUNK / 2));
#pragma unroll
        for (int s = 0; s < SEGMENTS; ++s) {
            const bool is_mine = SEGMENTS == 1 || lane_index() % 4 / 2 == s;
#pragma unroll
            for (int tile = 0; tile < tiles; ++tile) {
                i32 totals[4] = {TOTAL_ZERO, TOTAL_ZERO, TOTAL_ZERO, TOTAL_ZERO};
#pragma unroll
                for (int i = 0; i < SPAN; ++i) {
                    const u32 b[2] = {is_mine ? words[i].x : 0, is_mine ? words[i].y : 0};
                    multiply_tile(totals, a[tile][i], b);
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int r = i / 2, row = i % 2;
                    float value = to_float(totals[i]) * segments[tile].scales[s][r];
                    if (ADDS_MINIMUMS) value = fmaf(segments[tile].minimums[s][r], of_x[row].sums[s], value);
                    sums[tile][n][i] = fmaf(value, of_x[row].scale, sums[tile][n][i]);
                }
            }
        }
    }
}

// sums += the products of a chunk.
template <int tiles, int n_tiles>
DEVICE void multiply_int8_chunk(float (&sums)[tiles][n_tiles][4], const Codes (&codes)[tiles],
                                const LaneRows& x, int stride) {
#pragma unroll
    for (int half = 0; half < 2; half += SPAN) multiply_span(sums, codes, half, x, stride);
}
