// Weights in the order in which tensor cores take them.
//
// A matrix [out, in] is cut into tiles of 16 rows, and these into chunks of 64 columns, padded with zeros.
// Lane l of a warp, with g = l / 4 and t = l % 4, has rows g and g + 8 of a tile, and of each 32 columns (a
// half chunk) the eight from 8t on. Its codes of a chunk are consecutive in memory, those of the lanes too:
//
//   16 bits   [tile][chunk][half][row g, g+8][lane][8 float16]
//    8 bits   [tile][chunk][half][lane][row g: 8 codes, row g+8: 8 codes]
//    4 bits   [tile][chunk][lane][half][row g: word, row g+8: word]
//    2 bits   [tile][chunk][lane][row g: word, row g+8: word], both halves in a word
//    1 bit    [tile][chunk][lane][word], both rows and halves in it
//
// Codes of 6, 5 and 3 bits are two arrays: the low 4 (or 2) bits, and the high 2 (or 1) bits. Within a word,
// the codes of an even column and of the next one are 16 bits apart, so that one shift and one mask make a
// half2 of both:
//
//    4 bits   pair p at bits 4p and 4p + 16
//    2 bits   pair p of half h at bits 2(4h + p) and 2(4h + p) + 16
//    1 bit    pair p of half h of row r at bits 8r + 4h + p and 8r + 4h + p + 16
//
// Codes that index a book have 4 bits, column n at bits 4n. Numbers of type e4m3fn are codes of 8 bits.
//
// Definitions: BITS 16 (float16, without scales), 8, 6, 5, 4, 3 or 2; ZERO is subtracted from codes; BOOK,
// see book.cuh; those of scales.cuh.
#pragma once

#include "book.cuh"
#include "scales.cuh"

// Columns are cut into this many slices, whose sums are added in order: so rows have the same bits in every
// kernel.
constexpr int SLICES = 8;
// Matrices that one launch multiplies by the same rows.
constexpr int MATRICES = 4;
constexpr int LOW_BITS = BITS == 6 || BITS == 5 ? 4 : BITS == 3 ? 2 : BITS;
constexpr int HIGH_BITS = BITS - LOW_BITS;
constexpr int LOW_WORDS = LOW_BITS * CHUNK / WARP / 2 * TILE / 16;
constexpr int HIGH_WORDS = HIGH_BITS;

// A matrix in device memory, or in a block (experts.cuh).
struct Matrix {
    const u8* low;
    const u8* high;
    ScaleArrays scales;
    i32 chunks;  // of a tile
};

// Where a lane reads a tile.
struct Tile {
    const u8* low;
    const u8* high;
    ScalePlaces scales;
};

// What a lane has of a chunk.
struct Codes {
    u32 low[LOW_WORDS];
    u32 high[HIGH_WORDS > 0 ? HIGH_WORDS : 1];
    Scales scales;
};

constexpr int PIECE_WORDS = LOW_WORDS < 4 ? LOW_WORDS : 4;  // read by one instruction

DEVICE int slice_start(int slice, int chunks) { return slice * chunks / SLICES; }

// `block` is added to all addresses: those of a matrix in a block are places in it.
DEVICE Tile tile_at(const Matrix& m, int tile, u64 block = 0) {
    const int lane = lane_index();
    const i64 chunk = (i64)tile * m.chunks;
    return {m.low + block + (chunk * LOW_WORDS * WARP + lane * PIECE_WORDS) * 4,
            m.high + block + (chunk * WARP + lane) * (HIGH_WORDS * 4),
            scales_at(m.scales, tile, m.chunks, block)};
}

DEVICE void load_words(u32* words, const u8* from, int num_words) {
    if (num_words == 2) {
        const Words2 w = read_once_8(from);
        words[0] = w.x, words[1] = w.y;
    } else if (num_words == 1) {
        words[0] = read_once_4(from);
    } else {
        const Words4 w = read_once(from);
        words[0] = w.x, words[1] = w.y, words[2] = w.z, words[3] = w.w;
    }
}

DEVICE void load_codes(Codes& codes, const Tile& tile, int chunk) {
    const u8* low = tile.low + (i64)chunk * (LOW_WORDS * WARP * 4);
#pragma unroll
    for (int piece = 0; piece < LOW_WORDS / PIECE_WORDS; ++piece) {
        load_words(codes.low + PIECE_WORDS * piece, low + piece * (PIECE_WORDS * WARP * 4), PIECE_WORDS);
    }
    if (HIGH_WORDS > 0) load_words(codes.high, tile.high + (i64)chunk * (HIGH_WORDS * WARP * 4), HIGH_WORDS);
    load_scales(codes.scales, tile.scales, chunk);
}

// The bits of a float16 with an integer value from 1 to 2047, twice.
constexpr u32 half2_of(int value) {
    int exponent = 0;
    while (value >> (exponent + 1)) ++exponent;
    return (u32)((exponent + 15) << 10 | (value << (10 - exponent) & 0x3ff)) * 0x10001u;
}

// Codes are put into the mantissa of a float16 at bit `at`, below a leading one: that is 2^(10 - at) + code.
constexpr u32 leading_one(int at) { return (u32)(25 - at) << 10 << 16 | (u32)(25 - at) << 10; }

// Return the half2 of integers (`code - ZERO`, or entries of the book) of a pair of columns of a half chunk;
// r = 0 is row g, 1 row g + 8. `ones` is 0x00010001, but not known to the compiler: masks that it knows, or
// else the choice of bytes, are moved into a register at each use.
DEVICE half2 integers(const Codes& codes, int half, int r, int pair, u32 ones) {
    constexpr u32 LOW_MASK = (1u << LOW_BITS % 16) - 1;
    constexpr u32 HIGH_MASK = (1u << HIGH_BITS) - 1;
    u32 bits;
    int at = 0;
    if (BOOK) {
        const u32 word = codes.low[(2 * half + r) % LOW_WORDS];
        const u32 four = entries_of(word >> pair / 2 * 16);
        bits = pick_bytes(four, leading_one(0), pair % 2 == 0 ? 0x5150 : 0x5352);
    } else if (LOW_BITS == 8) {
        const u32 word = codes.low[(4 * half + 2 * r + pair / 2) % LOW_WORDS];
        bits = pick_bytes(word, ones * (leading_one(0) & 0xffff), pair % 2 == 0 ? 0x5150 : 0x5352);
    } else {
        // Where the pair is in its word, and how far that is shifted so that the code ends within the
        // mantissa.
        const u32 word = codes.low[(LOW_BITS == 4 ? 2 * half + r : r) % LOW_WORDS];
        const int place = LOW_BITS == 4 ? 4 * pair : 2 * (4 * half + pair);
        const int shift = place >= 8 ? 8 : 0;
        at = place - shift;
        bits = (word >> shift) & (ones * LOW_MASK << at);
    }
    if (HIGH_BITS > 0) {
        const u32 word = codes.high[HIGH_BITS == 2 ? r : 0];
        const int place = HIGH_BITS == 2 ? 2 * (4 * half + pair) : 8 * r + 4 * half + pair;
        const int to = at + LOW_BITS;
        bits |= (to > place ? word << (to - place) : word >> (place - to)) & (ones * HIGH_MASK << to);
    }
    if (LOW_BITS != 8 && !BOOK) bits |= leading_one(at);
    return subtract(bits, half2_of((1 << (10 - at)) + (BOOK ? ENTRY_ZERO : ZERO)));
}

// Return the half2 of a pair of numbers of type e4m3fn, times 2^-8: exact, since the float16 with the same
// fields has an exponent of one bit more, whose bias is 8 larger.
DEVICE half2 numbers(const Codes& codes, int half, int r, int pair) {
    const u32 word = codes.low[(4 * half + 2 * r + pair / 2) % LOW_WORDS];
    const u32 bytes = pick_bytes(word, 0, pair % 2 == 0 ? 0x1404 : 0x3424);  // the upper ones of float16
    return (bytes & 0x80008000u) | (bytes >> 1 & 0x3f803f80u);
}

// Return the half2 of the weights of a pair of columns.
DEVICE half2 weights_of(const Codes& codes, const Factors& factors, int half, int r, int pair, u32 ones) {
    if (!HAS_SCALES) return codes.low[(8 * half + 4 * r + pair) % LOW_WORDS];
    const half2 value = FP8 ? numbers(codes, half, r, pair) : integers(codes, half, r, pair, ones);
    if (!MINIMUM) return multiply(value, factors.scales[r]);
    return multiply_add(value, factors.scales[r], factors.minimums[r]);
}

// The `a` words of multiply_tile for half a chunk: tiles 0 and 1 have columns 8t .. 8t+3 and 8t+4 .. 8t+7 of
// lane t.
DEVICE void weight_tile(u32 (&a)[4], const Codes& codes, const Factors& factors, int half, int k_tile,
                        u32 ones) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        a[2 * part] = weights_of(codes, factors, half, 0, 2 * k_tile + part, ones);
        a[2 * part + 1] = weights_of(codes, factors, half, 1, 2 * k_tile + part, ones);
    }
}
