// Where keys and values of a layer lie in its pool.
//
//   pool   [block][kv_head] { keys, values }
//   keys   codes [padded_dim][16 tokens]    scales [groups][16 tokens]
//   values codes [16 tokens][padded_dim]    scales [groups][16 tokens]
//
// Codes are f32, f16, bf16 or int8 numbers; int8 alone has scales, f16, one for each token and 32 elements of
// a head. Keys are transposed: a lane is a token, so scores need no sum across lanes. padded_dim is head_dim
// rounded up to 16; codes beyond head_dim are zero.

#pragma once

#include <cstdint>

namespace llmd {

// The order is that of llmd.api.kv.KV_DTYPES.
enum class KvDtype : int32_t { kF32, kF16, kBF16, kInt8 };

constexpr int64_t kKvGroup = 32;  // elements of a head that share an int8 scale

struct KvLayout {
    KvDtype dtype;
    int64_t kv_heads;
    int64_t head_dim;

    constexpr int64_t padded_dim() const { return (head_dim + 15) / 16 * 16; }
    constexpr int64_t groups() const { return (head_dim + kKvGroup - 1) / kKvGroup; }

    // All in bytes. `half_bytes` is one head's keys, or its values, in a block.
    constexpr int64_t code_bytes() const {
        return dtype == KvDtype::kF32 ? 4 : dtype == KvDtype::kInt8 ? 1 : 2;
    }
    constexpr int64_t scales_at() const { return 16 * padded_dim() * code_bytes(); }
    constexpr int64_t half_bytes() const {
        return scales_at() + (dtype == KvDtype::kInt8 ? 2 * 16 * groups() : 0);
    }
    constexpr int64_t head_bytes() const { return 2 * half_bytes(); }
    constexpr int64_t block_bytes() const { return kv_heads * head_bytes(); }
};

}  // namespace llmd
