// The arguments of the kernels of compressed attention and of hyper-connections.

#pragma once

#include <cstdint>

#include "attention_args.hpp"

namespace llmd {

// Makes vectors that stand for several tokens; see llmd.api.compressed_ops.Compress. `kept` has the pool with
// x and gate of each token, one behind the other.
struct CompressArgs {
    AttentionArgs kept;
    const float* x;     // [rows, width]
    const float* gate;  // [rows, width]
    const float* bias;  // [stride, width]
    float* out;         // [rows, dim]
    int64_t width;
    int64_t dim;
    int64_t stride;
    int64_t span;  // tokens that a vector is made of: the stride, or twice as many if they overlap
};

// Attention to two sets of positions; see llmd.api.compressed_ops.MergeAttention.
struct MergeArgs {
    const float* a;       // [rows, heads, dim]
    const float* a_sums;  // [rows, heads]
    const float* b;
    const float* b_sums;
    float* out;
    int64_t rows;
    int64_t heads;
    int64_t dim;
};

// The weights of streams, from the products of their matrix; see llmd.api.stream_ops.StreamWeights.
struct StreamWeightsArgs {
    const float* x;         // [rows, width]
    const float* products;  // [rows, count]
    float* out;             // [rows, count]
    int64_t rows;
    int64_t width;
    int64_t count;       // streams, or streams * (streams + 2)
    const float* bias;   // [count]
    const float* scale;  // [1], or [3]
    int64_t streams;
    int64_t rounds;
    float eps;
    float floor;
};

// Mixtures of streams; see llmd.api.stream_ops.CollapseStreams and MixStreams.
struct StreamArgs {
    const float* x;        // [rows, streams, width]
    const float* y;        // [rows, width], or null
    const float* weights;  // [rows, count]
    float* out;            // [rows, width], or [rows, streams, width]
    int64_t rows;
    int64_t streams;
    int64_t width;
    int64_t count;
};

}  // namespace llmd
