// The arguments of the kernels that read or write blocks of keys and values.

#pragma once

#include <cstdint>

#include "kv_layout.hpp"

namespace llmd {

constexpr int64_t kBlockLen = 16;  // tokens in a KV block

struct AttentionArgs {
    const float* q;
    const float* k;  // null, as v: the keys and values of the step are in the pool
    const float* v;
    float* out;
    const int32_t* tokens;     // [rows]: positions of tokens
    const int32_t* positions;  // [rows]: the same, or of the last vectors that rows see; -1: of none
    const int32_t* row_offsets;
    int64_t rows;
    int64_t sequences;
    const int32_t* block_table;  // [sequences, table_width]
    int64_t table_width;
    void* pool;  // this layer's blocks, see kv_layout.hpp
    KvDtype dtype;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t value_dim;  // elements of a value
    bool latent;        // values are the first elements of keys
    int64_t stride;     // tokens for each vector
    int64_t vectors;    // in a block
    int64_t window;     // 0: none
    bool causal;        // false: a row attends to every row of its sequence in the step
    float scale;
    float softcap;        // 0: none
    const float* sinks;   // [heads]; null: none
    float* sums;          // [rows, heads]: the logarithms of sums of exponentials; null: not needed
    const float* chosen;  // [rows, top_k]: what an indexer wrote; null: all positions
    int64_t top_k;
    float* scratch;
    int64_t scratch_per_thread;  // floats, `attention_scratch`
    float* partials;  // shared by all threads, `attention_partials` floats; null: no sequence is split
};

// Chooses positions; see llmd.api.latent_ops.Indexer. `keys` has queries, and what `write_kv` needs to store
// the index keys of the step.
struct IndexerArgs {
    AttentionArgs keys;
    const float* head_weights;  // [rows, heads]
    float* out;                 // [rows, top_k]
    int64_t top_k;
    float* scores;  // [threads, most_positions]
    int64_t most_positions;
};

}  // namespace llmd
