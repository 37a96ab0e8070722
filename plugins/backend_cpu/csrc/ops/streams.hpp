// Hyper-connections: the weights of streams, and their mixtures.
//
//   stream_weights    out = sigmoid(z) + floor of what a layer reads, 2 sigmoid(z) of what it writes, and a
//                     matrix: the softmax of each row of z plus floor, then columns and rows divided by their
//                     sums plus floor in turn. z = products / sqrt(mean(x^2) + eps) * scale + bias
//   collapse_streams  out[r] = sum over streams i of weights[r][i] * x[r][i]
//   mix_streams       out[r][k] = write[r][k] * y[r] + sum over streams i of mix[r][i, k] * x[r][i]
//
//   x       [rows, streams, width]  f32     products, weights  [rows, streams * (streams + 2)]  f32
//   work    one row at a time
//   order   streams ascending: a row has the same bits whatever rows share its step
//   check   NMSE < 1e-9   (llmd.testing.stream_cases)
//   from    Xie et al. 2026, "mHC: Manifold-Constrained Hyper-Connections"; Sinkhorn & Knopp 1967

#pragma once

#include "ops/gate.hpp"
#include "ops/near.hpp"

namespace llmd::LLMD_ISA {

LLMD_INLINE float lane_of(Vec x) {
    float lanes[Vec::kLanes];
    store(lanes, x);
    return lanes[0];
}

// 1 / sqrt(mean(x^2) + eps) of a row.
LLMD_INLINE float inverse_length(const float* x, int64_t width, float eps) {
    Vec squares = set1(0.0F);
    for (int64_t i = 0; i < width; i += Vec::kLanes) {
        const int64_t left = width - i;
        const Vec part = load_n(x + i, left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes);
        squares = fma(part, part, squares);
    }
    return 1.0F / __builtin_sqrtf(sum(squares) / static_cast<float>(width) + eps);
}

// Divides numbers, `step` apart, by their sum plus `floor`.
LLMD_INLINE void divide_by_sum(float* first, int64_t count, int64_t step, float floor) {
    float total = floor;
    for (int64_t i = 0; i < count; ++i) total += first[i * step];
    for (int64_t i = 0; i < count; ++i) first[i * step] /= total;
}

// Turns z [streams, streams] into a matrix whose rows and columns add up to about 1.
LLMD_INLINE void balance(const StreamWeightsArgs& args, float* z) {
    const int64_t n = args.streams;
    for (int64_t i = 0; i < n; ++i) {
        float* row = z + i * n;
        float top = row[0];
        for (int64_t k = 1; k < n; ++k) top = row[k] > top ? row[k] : top;
        for (int64_t k = 0; k < n; ++k) row[k] = lane_of(exp(set1(row[k] - top)));
        divide_by_sum(row, n, 1, 0.0F);
        for (int64_t k = 0; k < n; ++k) row[k] += args.floor;
    }
    for (int64_t round = 0; round < args.rounds; ++round) {
        for (int64_t i = 0; round > 0 && i < n; ++i) divide_by_sum(z + i * n, n, 1, args.floor);
        for (int64_t k = 0; k < n; ++k) divide_by_sum(z + k, n, n, args.floor);
    }
}

void stream_weights(const StreamWeightsArgs& args, Worker& worker) {
    const int64_t n = args.streams;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const float inverse = inverse_length(args.x + r * args.width, args.width, args.eps);
        float* out = args.out + r * args.count;
        for (int64_t i = 0; i < args.count; ++i) {
            const float scale = args.scale[i < n ? 0 : i < 2 * n ? 1 : 2];
            out[i] = args.products[r * args.count + i] * inverse * scale + args.bias[i];
        }
        for (int64_t i = 0; i < n; ++i) out[i] = lane_of(sigmoid(set1(out[i]))) + args.floor;
        if (args.rounds == 0) return;
        for (int64_t i = n; i < 2 * n; ++i) out[i] = 2.0F * lane_of(sigmoid(set1(out[i])));
        balance(args, out + 2 * n);
    });
}

// Calls f(first, count) for the elements of a row that a vector has.
template <class F>
LLMD_INLINE void each_vector(int64_t width, F&& f) {
    for (int64_t i = 0; i < width; i += Vec::kLanes) {
        const int64_t left = width - i;
        f(i, left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes);
    }
}

void collapse_streams(const StreamArgs& args, Worker& worker) {
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const float* x = args.x + r * args.streams * args.width;
        const float* weights = args.weights + r * args.count;
        each_vector(args.width, [&](int64_t i, int n) LLMD_LAMBDA {
            Vec total = set1(0.0F);
            for (int64_t s = 0; s < args.streams; ++s)
                total = fma(load_n(x + s * args.width + i, n), set1(weights[s]), total);
            store_n(args.out + r * args.width + i, total, n);
        });
    });
}

void mix_streams(const StreamArgs& args, Worker& worker) {
    const int64_t streams = args.streams;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const float* x = args.x + r * streams * args.width;
        const float* write = args.weights + r * args.count + streams;
        const float* mix = write + streams;
        for (int64_t k = 0; k < streams; ++k) {
            each_vector(args.width, [&](int64_t i, int n) LLMD_LAMBDA {
                Vec total = load_n(args.y + r * args.width + i, n) * set1(write[k]);
                for (int64_t s = 0; s < streams; ++s)
                    total = fma(load_n(x + s * args.width + i, n), set1(mix[s * streams + k]), total);
                store_n(args.out + (r * streams + k) * args.width + i, total, n);
            });
        }
    });
}

}  // namespace llmd::LLMD_ISA
