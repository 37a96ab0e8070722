// Access to blocks of keys and values; kv_layout.hpp describes the layout.

#pragma once

#include <type_traits>

#include "kv_book.hpp"
#include "kv_layout.hpp"

namespace llmd::LLMD_ISA {

// Kinds of codes, in addition to the float types.
struct Int8 {};
struct Int4 {};

template <class Element>
constexpr bool kCoded = false;  // whether codes need scales to be numbers
template <>
constexpr bool kCoded<Int8> = true;
template <>
constexpr bool kCoded<Int4> = true;

// Whether heads are stored rotated, see ops/rotate.hpp.
template <class Element>
constexpr bool kRotated = false;
template <>
constexpr bool kRotated<Int4> = true;

// The value of code 1, as a fraction of the scale.
template <class Element>
constexpr float kCodeScale = 1.0F;
template <>
constexpr float kCodeScale<Int4> = 1.0F / kBookScale;

struct KvBlocks {
    uint8_t* pool;
    KvLayout layout;

    explicit KvBlocks(const AttentionArgs& args)
        : pool(static_cast<uint8_t*>(args.pool)),
          layout{args.dtype, args.kv_heads, args.head_dim, args.latent, args.vectors} {}

    // The keys of one head in a block; the values follow at a fixed distance.
    LLMD_INLINE_MEMBER uint8_t* keys(int64_t block, int64_t head) const {
        return pool + block * layout.block_bytes() + head * layout.head_bytes();
    }
    LLMD_INLINE_MEMBER uint8_t* values(int64_t block, int64_t head) const {
        return keys(block, head) + layout.values_at();
    }
};

// Calls f(Element{}) for the element type of a dtype.
template <class F>
LLMD_INLINE void for_element(KvDtype dtype, F&& f) {
    switch (dtype) {
        case KvDtype::kF32:
            return f(float{});
        case KvDtype::kF16:
            return f(F16{});
        case KvDtype::kBF16:
            return f(BF16{});
        case KvDtype::kInt8:
            return f(Int8{});
        case KvDtype::kInt4:
            return f(Int4{});
    }
}

}  // namespace llmd::LLMD_ISA
