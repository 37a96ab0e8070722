// Where keys and values of a layer lie in its pool.
//
//   pool   [block][kv_head] { keys [padded_dim][16 tokens], values [16 tokens][padded_dim] }    f32 or f16
//
// Keys are transposed: a lane is a token, so scores need no sum across lanes. padded_dim is head_dim rounded
// up to 16; elements beyond head_dim are zero.

#pragma once

#include <cstdint>

namespace llmd {

struct KvLayout {
    int64_t kv_heads;
    int64_t padded_dim;

    // Elements of one head's keys, and of its values, in a block.
    constexpr int64_t half() const { return 16 * padded_dim; }
    constexpr int64_t head_size() const { return 2 * half(); }
    constexpr int64_t block_size() const { return kv_heads * head_size(); }
};

constexpr int64_t padded_dim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

}  // namespace llmd
