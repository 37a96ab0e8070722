// out[row][column] = cap(scale * x[row] . weights[column] + bias[column]), for a piece of the columns; with RESIDUAL,
// out = residual + that * residual_scale.
//
// LANES threads share ROWS weight rows and COLS rows of x: a thread multiplies every LANES-th chunk of a weight row, 16
// elements at a time, and the sums of the threads are added as a tree. LANES depends on the matrix alone, so an element
// of `out` has the same order of sums for any ROWS, COLS and THREADS. GATHER: the rows of x are those in `index` (the
// output rows of a step). Groups: (columns / (THREADS / LANES * ROWS), rows / COLS).

#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x_id = 16) in;
layout(constant_id = 11) const uint ROWS = 2;
layout(constant_id = 12) const uint COLS = 1;
layout(constant_id = 13) const bool GATHER = false;
layout(constant_id = 14) const bool HAS_BIAS = false;
layout(constant_id = 15) const uint LANES = 16;
layout(constant_id = 16) const uint THREADS = 64;
layout(constant_id = 17) const bool RESIDUAL = false;
#include "activations.glsl"
#include "halves.glsl"
#include "matrix.glsl"
layout(binding = 0) buffer Work { vec4 work[]; }; // as work.glsl, in fours
layout(binding = 2) readonly buffer Biases { uint biases[]; };
layout(push_constant) uniform Push {
    uint count_at, x, x_stride, out_at, out_stride, width, height, low_at, high_at, scales_at, row_scales, coarse_at;
    uint row_coarse, outliers_at, bias_at, index;
    float scale, softcap;
    uint residual, residual_stride;
    float residual_scale;
};

const uint STEP = CHUNK < 16u ? CHUNK : 16u; // elements that share a scale for certain

shared float sums[COLS][THREADS];

uint word(uint at) { return floatBitsToUint(work[at >> 2][at & 3u]); }

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    uint count = word(count_at), first_row = gl_WorkGroupID.y * COLS;
    if (first_row >= count) {
        return;
    }
    uint first = (gl_WorkGroupID.x * (THREADS / LANES) + thread / LANES) * ROWS;
    uint chunks = (width + CHUNK - 1u) / CHUNK;
    uint fours = (width + 3u) / 4u;
    uint from[COLS];
    for (uint c = 0; c < COLS; c++) {
        uint row = min(first_row + c, count - 1u);
        from[c] = (x + (GATHER ? word(index + row) : row) * x_stride) >> 2;
    }
    precise float mine[ROWS][COLS];
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            mine[r][c] = 0.0;
        }
    }
    for (uint chunk = lane; chunk < chunks; chunk += LANES) {
        uvec4 low[ROWS];
        for (uint r = 0; r < ROWS; r++) {
            low[r] = weights[(low_at >> 2) + min(first + r, height - 1u) * chunks + chunk];
        }
        [[dont_unroll]] for (uint step_at = 0; step_at < CHUNK; step_at += STEP) {
            precise float products[ROWS][COLS], inputs[COLS];
            for (uint c = 0; c < COLS; c++) {
                inputs[c] = 0.0;
                for (uint r = 0; r < ROWS; r++) {
                    products[r][c] = 0.0;
                }
            }
            [[dont_unroll]] for (uint i = step_at / 4u; i < (step_at + STEP) / 4u; i++) {
                uint at = chunk * (CHUNK / 4u) + i;
                vec4 xs[COLS];
                for (uint c = 0; c < COLS; c++) {
                    xs[c] = at < fours ? work[from[c] + at] : vec4(0.0);
                    if (HAS_MINIMUM) {
                        inputs[c] = inputs[c] + xs[c].x;
                        inputs[c] = inputs[c] + xs[c].y;
                        inputs[c] = inputs[c] + xs[c].z;
                        inputs[c] = inputs[c] + xs[c].w;
                    }
                }
                for (uint r = 0; r < ROWS; r++) {
                    uint high = high_at + (min(first + r, height - 1u) * chunks + chunk) * HIGH_WORDS;
                    vec4 w = four(low[r], high, i);
                    for (uint c = 0; c < COLS; c++) {
                        products[r][c] = fma(w.x, xs[c].x, products[r][c]);
                        products[r][c] = fma(w.y, xs[c].y, products[r][c]);
                        products[r][c] = fma(w.z, xs[c].z, products[r][c]);
                        products[r][c] = fma(w.w, xs[c].w, products[r][c]);
                    }
                }
            }
            uint column = chunk * CHUNK + step_at;
            for (uint r = 0; r < ROWS; r++) {
                if (SCALES == 0u) {
                    for (uint c = 0; c < COLS; c++) {
                        mine[r][c] = mine[r][c] + products[r][c];
                    }
                } else if (column < width) {
                    uint row = min(first + r, height - 1u);
                    uint group = GROUP == 0u ? 0u : column / GROUP;
                    vec2 scaled = scale_of(scales_at + row * row_scales, coarse_at + row * row_coarse, group);
                    for (uint c = 0; c < COLS; c++) {
                        mine[r][c] = fma(scaled.x, products[r][c], mine[r][c]);
                        if (HAS_MINIMUM) {
                            mine[r][c] = fma(scaled.y, inputs[c], mine[r][c]);
                        }
                    }
                }
            }
        }
    }
    if (OUTLIERS != 0u) {
        uint groups = (width + GROUP - 1u) / GROUP;
        for (uint group = lane; group < groups; group += LANES) {
            for (uint r = 0; r < ROWS; r++) {
                uint row = min(first + r, height - 1u);
                uint at = outliers_at + (row * groups + group) * 2u;
                uint places = weight_word(at), residuals = weight_word(at + 1u);
                float step_size = 8.0 * scale_of(scales_at + row * row_scales, 0u, group).x;
                for (uint e = 0; e < 4u; e++) {
                    uint column = group * GROUP + byte_of(places, e);
                    float residual = step_size * fine_of(byte_of(residuals, e), true);
                    for (uint c = 0; c < COLS; c++) {
                        mine[r][c] = fma(residual, work[from[c] + column / 4u][column & 3u], mine[r][c]);
                    }
                }
            }
        }
    }
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            sums[c][thread] = mine[r][c];
        }
        for (uint others = LANES / 2u; others > 0u; others /= 2u) {
            barrier();
            if (lane < others) {
                for (uint c = 0; c < COLS; c++) {
                    precise float sum = sums[c][thread] + sums[c][thread + others];
                    sums[c][thread] = sum;
                }
            }
        }
        barrier();
        uint column = first + r, row = first_row + lane;
        if (lane < COLS && column < height && row < count) {
            precise float result = sums[lane][thread - lane] * scale;
            if (HAS_BIAS) {
                result = result + uintBitsToFloat(biases[bias_at + column]);
            }
            if (softcap != 0.0) {
                result = softcap * tanh_of(result / softcap);
            }
            if (RESIDUAL) {
                uint from_at = residual + row * residual_stride + column;
                precise float added = result * residual_scale;
                result = work[from_at >> 2][from_at & 3u] + added;
            }
            uint at = out_at + row * out_stride + column;
            work[at >> 2][at & 3u] = result;
        }
        barrier(); // the sums have been read
    }
}
