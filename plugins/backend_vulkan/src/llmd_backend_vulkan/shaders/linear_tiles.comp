// linear.comp for many rows of x: out[row][column] has the same bits, by the order of sums in linear.glsl.
//
// A work group computes TILE_ROWS weight rows for TILE_COLS rows of x, a thread ROWS x COLS elements of them. It takes
// the lanes one after the other, and of a lane DEPTH elements at a time: weights (codes as floats), scales and rows of x
// are brought to shared memory, then each thread multiplies. So it keeps three sums of an element: of a step, of the
// lane, and of the lanes before. Groups: (columns / TILE_ROWS,
// rows / TILE_COLS, or with EXPERTS groups of rows).
//
// With a tile of 64 x 64 and 8 x 4 elements of a thread, 128 threads:
// - A weight is read and unpacked once for 64 rows. For 4096 multiply-adds, 64 weights and 64 floats of x come from
//   memory or caches: at 4 bits that is 14 multiply-adds per byte. A thread of linear.comp loads 4 weights and 8 floats
//   for 32: one per byte.
// - A thread loads 12 floats of shared memory for 32 multiply-adds; neighbours load neighbouring fours, or the same.
// - DEPTH = 32 takes 16 KiB of shared memory and some 1.5 KiB for scales; 16 takes half of that. A device may have no
//   more than 16 KiB (Vulkan) and most have 32 to 64, so 2 to 6 work groups run at once and hide each other's loads.
// - 96 sums and some 30 other registers: half of what NVIDIA and AMD have for a thread; 4 x 4 elements need 48 + 25,
//   which fits the 128 registers of Intel's units at 16 threads wide.
// - Pieces of 16 bytes of a weight row are read, since neighbouring chunks are of other lanes. Sectors of caches are 32
//   bytes, so half of the traffic from L2 to the unit may be lost; memory has twice that traffic at worst.
// No subgroup operation is used, so any subgroup size is right. From 4 to 64, a subgroup loads whole fours of TILE_ROWS.

#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x_id = 16) in;
layout(constant_id = 19) const uint TILE_ROWS = 64; // a multiple of ROWS, as ROWS and COLS are of 4
layout(constant_id = 20) const uint DEPTH = 32;     // a multiple of STEP, at most 16 times as much
#include "linear.glsl"

const uint ACROSS = TILE_ROWS / ROWS; // threads that share rows of x
const uint TILE_COLS = THREADS / ACROSS * COLS;
const uint STEPS = DEPTH / STEP;
const uint IN_CHUNK = CHUNK / STEP;

shared vec4 codes[DEPTH * TILE_ROWS / 4u];  // [element][weight row]
shared vec4 inputs[DEPTH * TILE_COLS / 4u]; // [element][row of x]
shared vec2 scales[SCALES == 0u ? 1u : STEPS * TILE_ROWS];         // [step][weight row]
shared float input_sums[HAS_MINIMUM ? STEPS * TILE_COLS : 1u];     // [step][row of x]

uint first_column, chunks, lane_steps;
float lane_sums[ROWS][COLS], all_sums[ROWS][COLS]; // glslc 2023.2 fails if they are `precise`

// Of a step in the order of the lanes: its lane, its chunk (which may be beyond the last one), its first column.
uint lane_of(uint step_at) { return step_at / lane_steps; }
uint chunk_of(uint step_at) { return lane_of(step_at) + LANES * (step_at % lane_steps / IN_CHUNK); }
uint column_of(uint step_at) { return chunk_of(step_at) * CHUNK + step_at % IN_CHUNK * STEP; }

uint weight_row(uint r) { return ((r / 4u) * ACROSS + gl_LocalInvocationID.x % ACROSS) * 4u + r % 4u; }
uint x_row(uint c) { return ((c / 4u) * (THREADS / ACROSS) + gl_LocalInvocationID.x / ACROSS) * 4u + c % 4u; }

void load_inputs(uint first_step) {
    [[dont_unroll]] for (uint task = gl_LocalInvocationID.x; task < STEPS * TILE_COLS; task += THREADS) {
        uint step_at = task / TILE_COLS, row = task % TILE_COLS;
        uint from = row_of_x(min(first_row + row, end_row - 1u)), column = column_of(first_step + step_at);
        precise float sum = 0.0;
        [[dont_unroll]] for (uint i = 0; i < STEP; i += 4u) {
            vec4 four_inputs = column + i < width ? work[from + (column + i) / 4u] : vec4(0.0);
            [[unroll]] for (uint e = 0; e < 4u; e++) {
                inputs[((step_at * STEP + i + e) * TILE_COLS + row) / 4u][row & 3u] = four_inputs[e];
                sum = sum + four_inputs[e];
            }
        }
        if (HAS_MINIMUM) {
            input_sums[task] = sum;
        }
    }
}

void load_weights(uint first_step) {
    [[dont_unroll]] for (uint task = gl_LocalInvocationID.x; task < STEPS * TILE_ROWS; task += THREADS) {
        uint step_at = task / TILE_ROWS, row = task % TILE_ROWS, chunk = chunk_of(first_step + step_at);
        if (chunk >= chunks) {
            continue;
        }
        uint stored = stored_row(first_column + row), at = stored * chunks + chunk;
        uvec4 low = weights[(low_at >> 2) + at];
        [[dont_unroll]] for (uint i = 0; i < STEP; i += 4u) {
            uint in_chunk = (first_step + step_at) % IN_CHUNK * STEP + i;
            vec4 unpacked = four(low, high_at + at * HIGH_WORDS, in_chunk / 4u);
            [[unroll]] for (uint e = 0; e < 4u; e++) {
                codes[((step_at * STEP + i + e) * TILE_ROWS + row) / 4u][row & 3u] = unpacked[e];
            }
        }
        uint column = column_of(first_step + step_at);
        if (SCALES != 0u && column < width) {
            scales[task] = scale_at(stored, column);
        }
    }
}

void multiply(uint step_at) {
    precise float products[ROWS][COLS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            products[r][c] = 0.0;
        }
    }
    uint across = gl_LocalInvocationID.x % ACROSS, down = gl_LocalInvocationID.x / ACROSS;
    [[dont_unroll]] for (uint element = step_at * STEP; element < (step_at + 1u) * STEP; element++) {
        vec4 w[ROWS / 4u], xs[COLS / 4u];
        [[unroll]] for (uint r = 0; r < ROWS / 4u; r++) {
            w[r] = codes[element * (TILE_ROWS / 4u) + r * ACROSS + across];
        }
        [[unroll]] for (uint c = 0; c < COLS / 4u; c++) {
            xs[c] = inputs[element * (TILE_COLS / 4u) + c * (THREADS / ACROSS) + down];
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            [[unroll]] for (uint c = 0; c < COLS; c++) {
                products[r][c] = fma(w[r / 4u][r % 4u], xs[c / 4u][c % 4u], products[r][c]);
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        vec2 scaled = SCALES == 0u ? vec2(0.0) : scales[step_at * TILE_ROWS + weight_row(r)];
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            precise float sum = lane_sums[r][c];
            if (SCALES == 0u) {
                sum = sum + products[r][c];
            } else {
                sum = fma(scaled.x, products[r][c], sum);
            }
            if (HAS_MINIMUM) {
                sum = fma(scaled.y, input_sums[step_at * TILE_COLS + x_row(c)], sum);
            }
            lane_sums[r][c] = sum;
        }
    }
}

void add_outliers(uint lane) {
    [[dont_unroll]] for (uint group = lane; group * GROUP < width; group += LANES) {
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            for (uint e = 0; e < 4u; e++) {
                Outlier one = outlier_of(stored_row(first_column + weight_row(r)), group, e);
                [[unroll]] for (uint c = 0; c < COLS; c++) {
                    uint from = row_of_x(min(first_row + x_row(c), end_row - 1u));
                    float input_at = work[from + one.column / 4u][one.column & 3u];
                    precise float sum = fma(one.residual, input_at, lane_sums[r][c]);
                    lane_sums[r][c] = sum;
                }
            }
        }
    }
}

void end_lane(uint lane) {
    if (OUTLIERS != 0u) {
        add_outliers(lane);
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            precise float sum = all_sums[r][c] + lane_sums[r][c];
            all_sums[r][c] = sum;
            lane_sums[r][c] = 0.0;
        }
    }
}

void main() {
    if (!find_rows(TILE_COLS)) {
        return;
    }
    first_column = gl_WorkGroupID.x * TILE_ROWS;
    chunks = (width + CHUNK - 1u) / CHUNK;
    lane_steps = (chunks + LANES - 1u) / LANES * IN_CHUNK;
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            all_sums[r][c] = 0.0;
            lane_sums[r][c] = 0.0;
        }
    }
    // LANES is a multiple of STEPS, so the last tile is full.
    [[dont_unroll]] for (uint first_step = 0; first_step < LANES * lane_steps; first_step += STEPS) {
        load_inputs(first_step);
        load_weights(first_step);
        barrier();
        [[dont_unroll]] for (uint i = 0; i < STEPS; i++) {
            uint step_at = first_step + i;
            if (chunk_of(step_at) < chunks && (SCALES == 0u || column_of(step_at) < width)) {
                multiply(i);
            }
            if ((step_at + 1u) % lane_steps == 0u) {
                end_lane(lane_of(step_at));
            }
        }
        barrier();
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            uint row = first_row + x_row(c), column = first_column + weight_row(r);
            if (row < end_row && column < height) {
                store(row, column, all_sums[r][c]);
            }
        }
    }
}
