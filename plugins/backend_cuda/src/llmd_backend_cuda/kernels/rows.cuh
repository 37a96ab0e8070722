// The rows that a matrix multiplies, and what becomes of the products.
//
// Definition: INT8 1 if rows are rounded to int8 (rows_int8.cuh), else to float16.
#pragma once

#include "experts.cuh"

#ifndef INT8
#define INT8 0
#endif

constexpr int INT8_CHUNK = 80;

// Rows x [rows, width] in global memory, normalised if there is a norm.
struct Rows {
    const float* x;
    const i32* chosen;  // the row of x for each row; null: the same
    i32 width;
    i32 norm;           // 1: x / sqrt(mean(x^2) + eps) * (offset + gain)
    const float* gain;  // null: ones
    float eps;
    float offset;
    const i32* count;  // the number of rows that exist; null: all of a launch
};

// One output of a linear op, or the logits.
struct Output {
    float* out;             // [rows, width]
    const float* bias;      // [width], of experts [experts, width]; null: none
    const float* residual;  // [rows, width]; null: none
    float scale;            // of the products, or of what is added to the residual
    float softcap;          // 0: none
    float threshold;        // of the activation, if two matrices are paired
    float limit;            // of both products then; infinity: none
    i32 activation;
    i32 width;
    i32 tiles;
};

// Bytes of a chunk of 64 columns of x, and of what a lane reads of a half of it (weights.cuh).
constexpr int X_CHUNK = INT8 ? INT8_CHUNK : 128;
constexpr int X_LANE = INT8 ? 8 : 16;

// Bytes between rows in shared memory: no two of the lanes that read at once use the same bank. Those are 8
// lanes with 16 bytes of two rows, or 16 lanes with 8 bytes of four rows.
DEVICE constexpr int row_stride(int chunks) {
    return INT8 ? (chunks * X_CHUNK + 127) / 128 * 128 + 32 : chunks * X_CHUNK + 64;
}

// Where a lane, with g = lane / 4 and t = lane % 4, reads 8 rows in shared memory: its columns of row g; with
// INT8 also the scales of rows 2t and 2t + 1.
struct LaneRows {
    const u8* row;
    const u8* scales[2];
};

// Of `num_rows` rows; lanes without a row take another one: what they multiply is never written.
DEVICE LaneRows lane_rows(const u8* rows, int stride, int num_rows) {
    const int g = lane_index() / 4, t = lane_index() % 4;
    const u8* scales = rows + 64;
    return {rows + (g < num_rows ? g : 0) * stride + X_LANE * t,
            {scales + (2 * t < num_rows ? 2 * t : 0) * stride,
             scales + (2 * t + 1 < num_rows ? 2 * t + 1 : 0) * stride}};
}

DEVICE LaneRows at_chunk(const LaneRows& x, int chunk) {
    return {x.row + chunk * X_CHUNK, {x.scales[0] + chunk * X_CHUNK, x.scales[1] + chunk * X_CHUNK}};
}

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

// The sum of squares of each row, as a float for each warp in `sums`, if there is a norm. All threads of the
// block take part, always 256 so that the sums have one order.
DEVICE void sum_squares(const Rows& rows, int first_row, int num_rows, float* sums) {
    if (!rows.norm) return;
    const int threads = num_threads(), warps = threads / WARP;
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

// What a norm multiplies row n by.
DEVICE float norm_factor(const Rows& rows, int n, const float* sums) {
    if (!rows.norm) return 1.0f;
    const int warps = num_threads() / WARP;
    float sum = 0.0f;
    for (int warp = 0; warp < warps; ++warp) sum += sums[n * warps + warp];
    return 1.0f / sqrtf(sum / rows.width + rows.eps);
}

DEVICE float4 load_normed(const Rows& rows, const float* x, int column, float factor) {
    float4 v = load_4(x, column, rows.width);
    if (!rows.norm) return v;
    float4 gain = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (rows.gain) gain = load_4(rows.gain, column, rows.width);
    v.x *= factor * (rows.offset + gain.x), v.y *= factor * (rows.offset + gain.y);
    v.z *= factor * (rows.offset + gain.z), v.w *= factor * (rows.offset + gain.w);
    return v;
}

// Write rows as float16, padded with zeros, `stride` bytes apart. `sums` has a float for each row and warp.
// All threads of the block take part; a barrier must follow. For columns in the order of products, see
// round_rows.cu.
DEVICE void stage_rows(const Rows& rows, int first_row, int num_rows, int padded_width, u8* to, int stride,
                       float* sums, bool in_product_order = false) {
    sum_squares(rows, first_row, num_rows, sums);
    for (int n = 0; n < num_rows; ++n) {
        const float* x = row_of(rows, first_row + n);
        const float factor = norm_factor(rows, n, sums);
        for (int column = 4 * thread_index(); column < padded_width; column += 4 * num_threads()) {
            const float4 v = load_normed(rows, x, column, factor);
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

// `member` is that of a group; without experts 0.
DEVICE float biased(const Output& output, float value, int column, int member) {
    return output.bias ? value + output.bias[(i64)member * output.width + column] : value;
}

DEVICE void write_output(const Output& output, float value, int row, int column, int member = 0) {
    const i64 at = (i64)row * output.width + column;
    if (output.residual) {
        output.out[at] = fmaf(biased(output, value, column, member), output.scale, output.residual[at]);
        return;
    }
    value = biased(output, value * output.scale, column, member);
    output.out[at] = output.softcap > 0.0f ? output.softcap * tanhf(value / output.softcap) : value;
}
