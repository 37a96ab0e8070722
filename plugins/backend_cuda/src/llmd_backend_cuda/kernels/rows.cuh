// The rows that a matrix multiplies, and what becomes of the products.
#pragma once

#include "activations.cuh"

// Rows x [rows, width] in global memory, normalised if there is a norm.
struct Rows {
    const float* x;
    const i32* chosen;  // the row of x for each row; null: the same
    i32 width;
    i32 norm;           // 1: x / sqrt(mean(x^2) + eps) * (offset + gain)
    const float* gain;  // null: ones
    float eps;
    float offset;
};

// One output of a linear op, or the logits.
struct Output {
    float* out;             // [rows, width]
    const float* bias;      // null: none
    const float* residual;  // [rows, width]; null: none
    float scale;            // of the products, or of what is added to the residual
    float softcap;          // 0: none
    float threshold;        // of the activation, if two matrices are paired
    i32 activation;
    i32 width;
    i32 tiles;
};

// Bytes between rows in shared memory: no two of 8 lanes that read 16 bytes of two rows use the same bank.
DEVICE int row_stride(int padded_width) { return padded_width * 2 + 64; }

DEVICE const float* row_of(const Rows& rows, int row) {
    return rows.x + (i64)(rows.chosen ? rows.chosen[row] : row) * rows.width;
}

DEVICE float4 load_4(const float* from, int column, int width) {
    if (width % 4 == 0) {
        return column < width ? *(const float4*)(from + column) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    return make_float4(column < width ? from[column] : 0.0f, column + 1 < width ? from[column + 1] : 0.0f,
                       column + 2 < width ? from[column + 2] : 0.0f,
                       column + 3 < width ? from[column + 3] : 0.0f);
}

// Write rows as float16, padded with zeros, `stride` bytes apart. `sums` has a float for each row and warp.
// All threads of the block take part, always 256 so that the sums of a norm have one order; a barrier must
// follow. For columns in the order of products, see round_rows.cu.
DEVICE void stage_rows(const Rows& rows, int first_row, int num_rows, int padded_width, u8* to, int stride,
                       float* sums, bool in_product_order = false) {
    const int threads = num_threads(), warps = threads / WARP;
    if (rows.norm) {
        for (int n = 0; n < num_rows; ++n) {
            const float* x = row_of(rows, first_row + n);
            float sum = 0.0f;
            for (int column = 4 * thread_index(); column < rows.width; column += 4 * threads) {
                const float4 v = load_4(x, column, rows.width);
                sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
            }
            sum = warp_sum(sum);
            if (lane_index() == 0) sums[n * warps + warp_index()] = sum;
        }
        block_barrier();
    }
    for (int n = 0; n < num_rows; ++n) {
        const float* x = row_of(rows, first_row + n);
        float factor = 1.0f;
        if (rows.norm) {
            float sum = 0.0f;
            for (int warp = 0; warp < warps; ++warp) sum += sums[n * warps + warp];
            factor = 1.0f / sqrtf(sum / rows.width + rows.eps);
        }
        for (int column = 4 * thread_index(); column < padded_width; column += 4 * threads) {
            float4 v = load_4(x, column, rows.width);
            if (rows.norm) {
                float4 gain = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
                if (rows.gain) gain = load_4(rows.gain, column, rows.width);
                v.x *= factor * (rows.offset + gain.x), v.y *= factor * (rows.offset + gain.y);
                v.z *= factor * (rows.offset + gain.z), v.w *= factor * (rows.offset + gain.w);
            }
            const Words2 words = {to_half2(v.x, v.y), to_half2(v.z, v.w)};
            if (in_product_order) {
                u32* at = (u32*)(to + (i64)n * stride + column / 32 * 64) + column % 32 / 8 + column % 8 * 2;
                at[0] = words.x, at[4] = words.y;
            } else {
                *(Words2*)(to + (i64)n * stride + 2 * column) = words;
            }
        }
    }
}

DEVICE float biased(const Output& output, float value, int column) {
    return output.bias ? value + output.bias[column] : value;
}

DEVICE void write_output(const Output& output, float value, int row, int column) {
    const i64 at = (i64)row * output.width + column;
    if (output.residual) {
        output.out[at] = fmaf(biased(output, value, column), output.scale, output.residual[at]);
        return;
    }
    value = biased(output, value * output.scale, column);
    output.out[at] = output.softcap > 0.0f ? output.softcap * tanhf(value / output.softcap) : value;
}
