// Hyper-connections: hidden states are several streams, and small matrices mix them anew in each row.
//
//   x         [rows, STREAMS, width]     f32      y  [rows, width]  f32
//   weight    [count, STREAMS * width]   f32, f16 or bf16 (stored.cuh); count is that of the weights of a row
//   products  [rows, count + 1]          f32, the last one the sum of squares of the row
//   weights   [rows, count]              f32: those that a layer reads and writes with, and a matrix of rows
//
// stream_products   x . weight^T. A block multiplies ROWS rows by OUTS rows of the weight, each thread every
//                   256th VECTOR columns in order
// stream_weights    a warp has a row of the step, and a lane a row of its matrix, whose rows and columns are
//                   divided by their sums in turn
// collapse_streams  out[r] = sum over streams i of weights[i] * x[i]
// mix_streams       out[r, k] = write[k] * y + sum over streams i of mix[i, k] * x[i]; out may be x. In both,
//                   a thread has VECTOR columns of all streams
//   exact   every sum has an order that depends on the row only
//   speed   products: bound by latency for few rows, else by the L2 cache; mixtures: by memory
//   from    Xie et al. 2026, "mHC: Manifold-Constrained Hyper-Connections"; Sinkhorn & Knopp 1967
//
// Macros: FORMAT of stored.cuh; VECTOR, neighbouring columns that are read at once: 4, or 1 if streams are
// not aligned; STREAMS, at most 8.
#include "activations.cuh"
#include "step.cuh"
#include "stored.cuh"

#ifndef VECTOR
#define VECTOR 4
#endif
#ifndef STREAMS
#define STREAMS 4
#endif

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / WARP;
constexpr int ROWS = 4;
constexpr int OUTS = 8;
constexpr int MOST_STREAMS = 8;

struct alignas(VECTOR * sizeof(Stored)) Weights {
    Stored at[VECTOR];
};
struct alignas(VECTOR * sizeof(float)) Elements {
    float at[VECTOR];
};

DEVICE Elements columns_at(const float* from) { return *(const Elements*)from; }

struct Args {
    const i32* counts;  // of Step
    const float* x;
    const void* weight;
    float* products;
    const float* bias;   // [count]
    const float* scale;  // [3], or [1] if there are only weights to read with
    float* out;
    i32 width;  // of all streams together
    i32 count;
    i32 rounds;
    float eps;
    float floor;
};

// Grid x: OUTS rows of the weight, grid y: ROWS rows.
KERNEL BOUNDS(THREADS, 2) stream_products(Args args) {
    SHARED float totals[WARPS][ROWS * (OUTS + 1)];
    allow_next_kernel();
    wait_for_previous_kernel();
    const int first_row = block_y() * ROWS, rows = args.counts[0] - first_row, first = block_x() * OUTS;
    if (rows <= 0) return;
    float sums[ROWS][OUTS + 1] = {};  // of the products, and of squares
    for (int column = thread_index() * VECTOR; column < args.width; column += THREADS * VECTOR) {
        Elements x[ROWS];
        Weights w[OUTS];
#pragma unroll
        for (int n = 0; n < ROWS; ++n) {  // in place of rows that do not exist, the last one is read
            x[n] = columns_at(args.x + (i64)(first_row + min(n, rows - 1)) * args.width + column);
        }
#pragma unroll
        for (int k = 0; k < OUTS; ++k) {
            const i64 at = (i64)min(first + k, args.count - 1) * args.width + column;
            w[k] = *(const Weights*)((const Stored*)args.weight + at);
        }
#pragma unroll
        for (int n = 0; n < ROWS; ++n) {
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
#pragma unroll
                for (int k = 0; k < OUTS; ++k)
                    sums[n][k] = fmaf(value_of(w[k].at[i]), x[n].at[i], sums[n][k]);
                sums[n][OUTS] = fmaf(x[n].at[i], x[n].at[i], sums[n][OUTS]);
            }
        }
    }
#pragma unroll
    for (int n = 0; n < ROWS; ++n) {
#pragma unroll
        for (int k = 0; k <= OUTS; ++k) {
            const float total = warp_sum(sums[n][k]);
            if (lane_index() == 0) totals[warp_index()][n * (OUTS + 1) + k] = total;
        }
    }
    block_barrier();
    const int n = thread_index() / (OUTS + 1), k = thread_index() % (OUTS + 1);
    const bool is_square = k == OUTS && block_x() == 0;
    if (n >= ROWS || n >= rows || (!is_square && (k == OUTS || first + k >= args.count))) return;
    float total = 0.0f;
    for (int warp = 0; warp < WARPS; ++warp) total += totals[warp][thread_index()];
    args.products[(i64)(first_row + n) * (args.count + 1) + (is_square ? args.count : first + k)] = total;
}

// The matrix of a row of the step: a lane has a row of it, and zeros if there is none.
struct Matrix {
    float at[STREAMS];

    DEVICE void divide_rows(float floor) {
        float sum = 0.0f;
        for (int j = 0; j < STREAMS; ++j) sum += at[j];
        for (int j = 0; j < STREAMS; ++j) at[j] = lane_index() < STREAMS ? at[j] / (sum + floor) : 0.0f;
    }
    DEVICE void divide_columns(float floor) {
        for (int j = 0; j < STREAMS; ++j) {
            float sum = at[j];
            for (int lanes = 1; lanes < MOST_STREAMS; lanes *= 2) sum += shuffle_xor(sum, lanes);
            at[j] = lane_index() < STREAMS ? at[j] / (sum + floor) : 0.0f;
        }
    }
};

// Grid x: rows.
KERNEL BOUNDS(WARP, 8) stream_weights(Args args) {
    allow_next_kernel();
    wait_for_previous_kernel();
    if (block_x() >= args.counts[0]) return;
    const float* products = args.products + (i64)block_x() * (args.count + 1);
    float* out = args.out + (i64)block_x() * args.count;
    const float factor = 1.0f / sqrtf(products[args.count] / args.width + args.eps);
    const int lane = lane_index();
    if (lane < (args.rounds ? 2 * STREAMS : STREAMS)) {
        const float z = fmaf(products[lane] * factor, args.scale[lane / STREAMS], args.bias[lane]);
        out[lane] = lane < STREAMS ? sigmoid(z) + args.floor : 2.0f * sigmoid(z);
    }
    if (!args.rounds) return;
    const int first = 2 * STREAMS + min(lane, STREAMS - 1) * STREAMS;
    Matrix matrix;
    float largest = -infinity(), sum = 0.0f;
    for (int j = 0; j < STREAMS; ++j) {
        matrix.at[j] = fmaf(products[first + j] * factor, args.scale[2], args.bias[first + j]);
        largest = fmaxf(largest, matrix.at[j]);
    }
    for (int j = 0; j < STREAMS; ++j) {
        matrix.at[j] = expf(matrix.at[j] - largest);
        sum += matrix.at[j];
    }
    for (int j = 0; j < STREAMS; ++j) matrix.at[j] = lane < STREAMS ? matrix.at[j] / sum + args.floor : 0.0f;
    for (int round = 0; round < args.rounds; ++round) {
        if (round > 0) matrix.divide_rows(args.floor);
        matrix.divide_columns(args.floor);
    }
    if (lane >= STREAMS) return;
    for (int j = 0; j < STREAMS; ++j) out[first + j] = matrix.at[j];
}

struct MixArgs {
    const float* x;
    const float* y;
    const float* weights;
    float* out;
    i32 width;  // of a stream
    i32 count;
};

// Read VECTOR columns of all streams.
DEVICE void read_streams(Elements (&x)[STREAMS], const MixArgs& args, int row, int column) {
#pragma unroll
    for (int i = 0; i < STREAMS; ++i) {
        x[i] = columns_at(args.x + ((i64)row * STREAMS + i) * args.width + column);
    }
}

// Grid x: rows, grid y: THREADS * VECTOR columns.
KERNEL BOUNDS(THREADS, 4) collapse_streams(MixArgs args) {
    const int row = block_x(), column = (block_y() * THREADS + thread_index()) * VECTOR;
    if (column >= args.width) return;
    const float* weights = args.weights + (i64)row * args.count;
    Elements x[STREAMS], out = {};
    read_streams(x, args, row, column);
#pragma unroll
    for (int i = 0; i < STREAMS; ++i) {
        for (int c = 0; c < VECTOR; ++c) out.at[c] = fmaf(weights[i], x[i].at[c], out.at[c]);
    }
    *(Elements*)(args.out + (i64)row * args.width + column) = out;
}

KERNEL BOUNDS(THREADS, 4) mix_streams(MixArgs args) {
    const int row = block_x(), column = (block_y() * THREADS + thread_index()) * VECTOR;
    if (column >= args.width) return;
    const float* write = args.weights + (i64)row * args.count + STREAMS;
    const float* mix = write + STREAMS;
    Elements x[STREAMS];
    read_streams(x, args, row, column);
    const Elements y = columns_at(args.y + (i64)row * args.width + column);
#pragma unroll
    for (int k = 0; k < STREAMS; ++k) {
        Elements out;
        for (int c = 0; c < VECTOR; ++c) out.at[c] = write[k] * y.at[c];
#pragma unroll
        for (int i = 0; i < STREAMS; ++i) {
            for (int c = 0; c < VECTOR; ++c) out.at[c] = fmaf(mix[i * STREAMS + k], x[i].at[c], out.at[c]);
        }
        *(Elements*)(args.out + ((i64)row * STREAMS + k) * args.width + column) = out;
    }
}
