// Blocks of keys and values as kernels address them; kv_layout.hpp has the layout.

#pragma once

#include "kv_layout.hpp"

namespace llmd::LLMD_ISA {

// Whether codes are numbers only together with their scales.
template <class Element>
constexpr bool kScaled = false;
template <>
constexpr bool kScaled<int8_t> = true;

// One head's keys, or its values, in one block.
template <class Element>
struct KvHalf {
    Element* codes;
    F16* scales;  // [groups][16 tokens]; none but for int8
};

template <class Element>
struct KvBlocks {
    uint8_t* pool;
    KvLayout layout;

    explicit KvBlocks(const AttentionArgs& args)
        : pool(static_cast<uint8_t*>(args.pool)), layout{args.dtype, args.kv_heads, args.head_dim} {}

    LLMD_INLINE_MEMBER KvHalf<Element> keys(int64_t block, int64_t head) const {
        return half(pool + block * layout.block_bytes() + head * layout.head_bytes());
    }
    LLMD_INLINE_MEMBER KvHalf<Element> values(int64_t block, int64_t head) const {
        return half(pool + block * layout.block_bytes() + head * layout.head_bytes() + layout.half_bytes());
    }

  private:
    LLMD_INLINE_MEMBER KvHalf<Element> half(uint8_t* at) const {
        return {reinterpret_cast<Element*>(at), reinterpret_cast<F16*>(at + layout.scales_at())};
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
            return f(int8_t{});
    }
}

}  // namespace llmd::LLMD_ISA
