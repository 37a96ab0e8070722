// Arrange a matrix for tensor cores: from one row after another to the layout of weights.cuh.
//
//   BITS < 16: from codes, one byte each, uint8 [out, in]; padding is the code ZERO
//   BITS 16:   from float32, float16 or bfloat16 [out, in] (SOURCE 0, 1, 2), rounded to float16; the padding
//              is zero
//
// A warp makes a chunk of a tile. Matrices pass through here once, when a model is loaded.
#include "weights.cuh"

struct Args {
    const void* source;
    u8* low;
    u8* high;
    i32 out, in;
    i32 first_tile;  // the source begins with this tile
    i32 tiles;
    i32 chunks;
};

DEVICE u32 element(const Args& args, int row, int column) {
    const bool inside = row < args.out && column < args.in;
    const i64 at = (i64)row * args.in + column;
#if BITS == 16
    if (!inside) return 0;
#if SOURCE == 0
    return to_half(((const float*)args.source)[at]);
#elif SOURCE == 1
    return ((const u16*)args.source)[at];
#else
    return to_half(float_of((u32)((const u16*)args.source)[at] << 16));
#endif
#else
    return inside ? ((const u8*)args.source)[at] : ZERO;
#endif
}

KERNEL BOUNDS(256, 1) pack(const Args args) {
    const i64 number = (i64)block_x() * (num_threads() / WARP) + warp_index();
    if (number >= (i64)args.tiles * args.chunks) return;
    const int lane = lane_index(), g = lane / 4, t = lane % 4;
    const int tile = number / args.chunks, chunk = number % args.chunks;
    const i64 at = (i64)(args.first_tile + tile) * args.chunks + chunk;
    u32 low[LOW_WORDS] = {};
    u32 high[HIGH_WORDS > 0 ? HIGH_WORDS : 1] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
                const int row = tile * TILE + 8 * r + g,
                          column = chunk * CHUNK + half * (CHUNK / 2) + 8 * t + 2 * pair;
                const u32 first = element(args, row, column), second = element(args, row, column + 1);
                const u32 low_pair = (first & ((1 << LOW_BITS) - 1)) | (second & ((1 << LOW_BITS) - 1)) << 16;
                if (LOW_BITS == 16) {
                    low[(8 * half + 4 * r + pair) % LOW_WORDS] = low_pair;
                } else if (LOW_BITS == 8) {
                    low[(4 * half + 2 * r + pair / 2) % LOW_WORDS] |= (first | second << 8)
                                                                      << (pair % 2 * 16);
                } else if (BOOK) {
                    low[(2 * half + r) % LOW_WORDS] |= (first | second << 4) << (8 * pair);
                } else if (LOW_BITS == 4) {
                    low[(2 * half + r) % LOW_WORDS] |= low_pair << (4 * pair);
                } else {
                    low[r % LOW_WORDS] |= low_pair << (2 * (4 * half + pair));
                }
                const u32 high_pair = first >> LOW_BITS | (second >> LOW_BITS) << 16;
                if (HIGH_BITS == 2)
                    high[r % (HIGH_WORDS > 0 ? HIGH_WORDS : 1)] |= high_pair << (2 * (4 * half + pair));
                if (HIGH_BITS == 1) high[0] |= high_pair << (8 * r + 4 * half + pair);
            }
        }
    }
    constexpr int PIECE = LOW_WORDS < 4 ? LOW_WORDS : 4;
#pragma unroll
    for (int word = 0; word < LOW_WORDS; ++word) {
        const i64 place = ((at * (LOW_WORDS / PIECE) + word / PIECE) * WARP + lane) * PIECE + word % PIECE;
        ((u32*)args.low)[place] = low[word];
    }
#pragma unroll
    for (int word = 0; word < HIGH_WORDS; ++word) {
        ((u32*)args.high)[(at * WARP + lane) * HIGH_WORDS + word] = high[word];
    }
}
