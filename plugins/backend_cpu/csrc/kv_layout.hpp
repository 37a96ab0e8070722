// The layout of a layer's keys and values in its pool.
//
//   pool   [block][kv_head] { keys, values }
//
//   f32, f16, bf16
//     keys    [padded_dim][16 tokens]               values  [16 tokens][padded_dim]
//     latent  [16 tokens, or fewer vectors][padded_dim], keys whose first elements are the values
//   int8      codes int8, then scales f16 [groups][16 tokens]
//     keys    [padded_dim / 2][16 tokens][2]        values  [8 token pairs][padded_dim][2]
//   int4      the upper 4 bits of codes, two codes of a token in a byte; then for each 32 elements
//             48 bytes of lowest bits and 16 bytes of scales (kv_book.hpp)
//     keys    [padded_dim / 4][16 tokens][2]        byte i: elements 4 j + i (low half) and 4 j + i + 2
//             bits [16 tokens][2], [16 tokens]      bit j of byte i: elements 2 j + i, and 16 + 2 j
//     values  [8 token pairs][padded_dim / 2][2]    byte of e = 16 j + i: elements 32 j + i (low half) and
//                                                   32 j + i + 16
//             bits [16][2 tokens], [8][2 tokens]    bit j of byte i: element i, and 16 + 2 i, of pair j
//
// Keys are transposed: each lane is a token, so scores need no sum across lanes. Int8 and int4 have a
// scale for each token and 32 elements of a head. Their codes are stored in pairs, which are multiplied
// together. The lowest bits of elements 17, 19 … 31 of a group are not stored: they follow from those of
// three others. padded_dim is head_dim rounded up to a multiple of 16, for int4 of 32; codes beyond
// head_dim are never used.

#pragma once

#include <cstdint>

namespace llmd {

// In the order of llmd.api.kv.KV_DTYPES.
enum class KvDtype : int32_t { kF32, kF16, kBF16, kInt8, kInt4 };

constexpr int64_t kKvGroup = 32;  // elements of a head that share a scale

// What int4 stores for a group after the upper bits of codes, as byte offsets: the lowest bits of 16
// elements, then of 8, then the scales.
constexpr int64_t kFewBitsAt = 32;
constexpr int64_t kByteScalesAt = 48;
constexpr int64_t kBitsOfGroup = 64;

struct KvLayout {
    KvDtype dtype;
    int64_t kv_heads;
    int64_t head_dim;
    bool latent = false;   // values are the first elements of keys; floats only
    int64_t vectors = 16;  // in a block; others only if latent

    constexpr int64_t padded_dim() const {
        const int64_t multiple = dtype == KvDtype::kInt4 ? 32 : 16;
        return (head_dim + multiple - 1) / multiple * multiple;
    }
    constexpr int64_t groups() const { return (head_dim + kKvGroup - 1) / kKvGroup; }

    // All in bytes. `half_bytes` is the size of one head's keys, or of its values, in a block; scales and
    // lowest bits begin at `scales_at`.
    constexpr int64_t scales_at() const { return vectors * padded_dim() * code_bits() / 8; }
    constexpr int64_t half_bytes() const {
        const int64_t of_group = dtype == KvDtype::kInt4   ? kBitsOfGroup
                                 : dtype == KvDtype::kInt8 ? 2 * 16
                                                           : 0;
        return scales_at() + of_group * groups();
    }
    constexpr int64_t values_at() const { return latent ? 0 : half_bytes(); }  // from a head's keys on
    constexpr int64_t head_bytes() const { return values_at() + half_bytes(); }
    constexpr int64_t block_bytes() const { return kv_heads * head_bytes(); }

  private:
    constexpr int64_t code_bits() const {
        switch (dtype) {
            case KvDtype::kF32:
                return 32;
            case KvDtype::kInt8:
                return 8;
            case KvDtype::kInt4:
                return 4;
            default:
                return 16;
        }
    }
};

}  // namespace llmd
