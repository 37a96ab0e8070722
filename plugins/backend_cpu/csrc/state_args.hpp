// The arguments of the kernels of layers that keep a matrix for each head; see llmd.api.state_ops.

#pragma once

#include <cstdint>

namespace llmd {

constexpr int64_t kStateCols = 16;  // columns of a state that lie next to each other

// A state in its slot, all float32: the `taps` - 1 rows before the next one, [row][q, k and v], then for each
// head the matrix [columns / 16][key_dim][16], with fewer columns in the last block. A state space has C as
// queries, B as keys and x as values. Of RWKV-7, only the matrices are such a state.
struct StateShape {
    int64_t heads;
    int64_t key_heads;
    int64_t key_dim;
    int64_t value_dim;
    int64_t taps;
    bool per_element;  // a decay for each element of a key; else one for each head
    bool tiled;        // head h uses key head h % key_heads

    int64_t key_width() const { return key_heads * key_dim; }
    int64_t value_width() const { return heads * value_dim; }
    int64_t width() const { return 2 * key_width() + value_width(); }
    int64_t decay_width() const { return per_element ? heads * key_dim : heads; }
    int64_t kept() const { return (taps - 1) * width(); }
    int64_t state() const { return kept() + heads * key_dim * value_dim; }
    int64_t key_head(int64_t head) const { return tiled ? head % key_heads : head / (heads / key_heads); }
};

// What rows are turned into before they change the state; memory for the rows of a step.
struct StateRows {
    float* mixed;   // [rows, width]: convolved queries, keys and values. Of RWKV-7: what is removed of the
                    // state, keys, and what is put in place of the removed
    float* decays;  // [rows, decay_width]: factors of the state
    float* shares;  // [rows, heads]: how much of a value is written; of a state space, the time of the row
};

struct StateArgs {
    const float* inputs[3];  // q, k, v
    const float* decay;      // of a state space: the time
    const float* beta;       // of the gated delta rule; of RWKV-7: the rate
    float* out;              // [rows, value_width]
    const float* taps;       // [taps, width]
    const float* taps_bias;  // [width], or null
    const float* rates;      // [heads]: a decay is exp(-rate * softplus(decay + bias))
    const float* bias;       // [decay_width]
    const float* skips;      // [heads], of a state space
    float least_time;        // bounds of softplus(decay + bias), of a state space
    float most_time;
    const float* removal;  // [heads * key_dim], as the next two, of RWKV-7
    const float* mixing;
    const float* bonuses;
    float* bonus;  // [rows, value_width]
    StateShape shape;
    StateRows rows_of;
    float* pool;           // the first state of this layer
    int64_t stride;        // from one state of the layer to the next
    const int32_t* slots;  // [sequences, 2]: the slot to read, -1 for none, and that to write
    const int32_t* row_offsets;
    int64_t rows;
    int64_t sequences;
};

// Mixes each row with the row before it in its sequence.
struct ShiftArgs {
    static constexpr int kMost = 8;  // outputs

    const float* x;  // [rows, width]
    float* outs[kMost];
    const float* shares[kMost];  // [width], of the row before
    int64_t count;               // outputs
    int64_t width;
    float* pool;  // the first state of this layer: the row before the next one
    int64_t stride;
    const int32_t* slots;
    const int32_t* row_offsets;
    int64_t sequences;
};

}  // namespace llmd
