// The product of tiles, for all lanes of a warp.
#pragma once

#include "engine.hpp"
#include "half.hpp"

namespace simt {

// The tiles of a warp as matrices: float16 as they come, then as floats.
struct Matrices {
    unsigned short a[16 * 16], b[16 * 8];
    float wide_a[16 * 16], wide_b[16 * 8], sums[16 * 8];

    void take(int lane, const Tile& tile) {
        const int g = lane / 4, t = lane % 4 * 2;
        for (int half = 0; half < 2; ++half) {
            const int bits = half * 16;
            a[g * 16 + t + half] = tile.a[0] >> bits;
            a[(g + 8) * 16 + t + half] = tile.a[1] >> bits;
            a[g * 16 + t + 8 + half] = tile.a[2] >> bits;
            a[(g + 8) * 16 + t + 8 + half] = tile.a[3] >> bits;
            b[(t + half) * 8 + g] = tile.b[0] >> bits;
            b[(t + 8 + half) * 8 + g] = tile.b[1] >> bits;
            sums[g * 8 + t + half] = tile.sums[half];
            sums[(g + 8) * 8 + t + half] = tile.sums[2 + half];
        }
    }

    void multiply() {
        for (int i = 0; i < 256; ++i) wide_a[i] = half_to_float(a[i]);
        for (int i = 0; i < 128; ++i) wide_b[i] = half_to_float(b[i]);
        for (int row = 0; row < 16; ++row) {
            float total[8];
            for (int column = 0; column < 8; ++column) total[column] = sums[row * 8 + column];
            for (int k = 0; k < 16; ++k) {
                for (int column = 0; column < 8; ++column)
                    total[column] += wide_a[row * 16 + k] * wide_b[k * 8 + column];
            }
            for (int column = 0; column < 8; ++column) sums[row * 8 + column] = total[column];
        }
    }

    void give(int lane, float* result) const {
        const int g = lane / 4, t = lane % 4 * 2;
        for (int half = 0; half < 2; ++half) {
            result[half] = sums[g * 8 + t + half];
            result[2 + half] = sums[(g + 8) * 8 + t + half];
        }
    }
};

void multiply_tiles(void* const* records) {
    Matrices matrices;
    for (int lane = 0; lane < 32; ++lane) matrices.take(lane, *(const Tile*)records[lane]);
    matrices.multiply();
    for (int lane = 0; lane < 32; ++lane) matrices.give(lane, ((const Tile*)records[lane])->sums);
}

}  // namespace simt
