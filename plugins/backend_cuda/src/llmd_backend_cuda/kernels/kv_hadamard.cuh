// The rotation of heads before they are stored in 4 bits, as docs/ops.md defines it: a head is cut into
// pieces of the largest powers of two, largest first, and a piece x of n elements becomes H x / sqrt(n),
// where H is Sylvester's Hadamard matrix. It is its own inverse, and keeps the products of queries and keys.
//
// Macros: HEAD_DIM.
#pragma once

#include "gpu.cuh"

constexpr int MOST_DIM = 512;

// The size of the piece that a dimension belongs to; 1 beyond the head.
DEVICE constexpr int piece_of(int dim) {
    int end = 0;
    for (int size = MOST_DIM; size > 0; size /= 2) {
        if (HEAD_DIM & size) end += size;
        if (dim < end) return size;
    }
    return 1;
}

// 1 / sqrt(piece), rounded once.
DEVICE constexpr float factor_of(int piece) {
    float factor = 1.0f;
    for (; piece > 1; piece /= 4) factor *= piece == 2 ? 0.70710678118654752f : 0.5f;
    return factor;
}

// Rotate a head, of which a lane has every 32nd dimension.
template <int slabs>
DEVICE void rotate_head(float (&x)[slabs]) {
    const int lane = lane_index();
#pragma unroll
    for (int s = 0; s < slabs; ++s) {
        const bool is_whole = (s + 1) * WARP <= HEAD_DIM;  // then all its pieces are at least that large
        const int piece = is_whole ? piece_of(s * WARP) : piece_of(s * WARP + lane);
#pragma unroll
        for (int distance = 1; distance < WARP; distance *= 2) {
            const float other = shuffle_xor(x[s], distance);
            if (distance < piece) x[s] = lane & distance ? other - x[s] : x[s] + other;
        }
    }
#pragma unroll
    for (int apart = 1; apart < slabs; apart *= 2) {
#pragma unroll
        for (int s = 0; s + apart < slabs; ++s) {
            if (s & apart || apart * WARP >= piece_of(s * WARP)) continue;
            const float low = x[s], high = x[s + apart];
            x[s] = low + high, x[s + apart] = low - high;
        }
    }
#pragma unroll
    for (int s = 0; s < slabs; ++s) x[s] *= factor_of(piece_of(s * WARP + lane));
}
