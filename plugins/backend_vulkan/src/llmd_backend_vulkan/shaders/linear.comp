// out[row][column] = cap(scale * x[row] . weights[column] + bias[column]), for a piece of the columns; with RESIDUAL,
// out = residual + that * residual_scale. For few rows: linear_tiles.comp is for many.
//
// LANES threads, a lane each (linear.glsl), share ROWS weight rows and COLS rows of x. GATHER: the rows of x are those
// in `index` (the output rows of a step). Groups: (columns / (THREADS / LANES * ROWS), rows / COLS,
// or with EXPERTS groups of rows).

#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x_id = 16) in;
#include "linear.glsl"

shared float sums[COLS][THREADS + 1u];

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    if (!find_rows(COLS)) {
        return;
    }
    uint first = (gl_WorkGroupID.x * (THREADS / LANES) + thread / LANES) * ROWS;
    uint chunks = (width + CHUNK - 1u) / CHUNK;
    uint fours = (width + 3u) / 4u;
    uint from[COLS];
    for (uint c = 0; c < COLS; c++) {
        from[c] = row_of_x(min(first_row + c, end_row - 1u));
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
            low[r] = weights[(low_at >> 2) + stored_row(first + r) * chunks + chunk];
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
                    uint high = high_at + (stored_row(first + r) * chunks + chunk) * HIGH_WORDS;
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
                    vec2 scaled = scale_at(stored_row(first + r), column);
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
        for (uint group = lane; group * GROUP < width; group += LANES) {
            for (uint r = 0; r < ROWS; r++) {
                for (uint e = 0; e < 4u; e++) {
                    Outlier one = outlier_of(stored_row(first + r), group, e);
                    for (uint c = 0; c < COLS; c++) {
                        float input_at = work[from[c] + one.column / 4u][one.column & 3u];
                        mine[r][c] = fma(one.residual, input_at, mine[r][c]);
                    }
                }
            }
        }
    }
    for (uint r = 0; r < ROWS; r++) {
        for (uint c = 0; c < COLS; c++) {
            sums[c][thread] = mine[r][c];
        }
        barrier();
        uint column = first + r, row = first_row + lane;
        if (lane < COLS && column < height && row < end_row) {
            precise float sum = 0.0;
            for (uint other = 0; other < LANES; other++) {
                sum = sum + sums[lane][thread - lane + other];
            }
            store(row, column, sum);
        }
        barrier(); // the sums have been read
    }
}
