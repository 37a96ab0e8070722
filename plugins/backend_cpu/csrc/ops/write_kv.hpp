// write_kv: puts the keys and values of the step into their blocks
//
//   k, v   [rows, kv_heads, head_dim]  f32
//   pool   f32, f16, bf16, int8, see kv_layout.hpp     rounds to nearest even
//   int8   for each token and 32 elements of a head: scale = f16(max |x| / 127), codes rint(x / scale) within
//          +-127, by the reciprocal in f32; zeros where the scale is 0
//   work   one row at a time: what is kept of a token depends on that token alone
//   check  equal to llmd.builtin.reference.kv_formats   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/kv_blocks.hpp"
#include "ops/quantize.hpp"

namespace llmd::LLMD_ISA {

// Rounds elements of one token and head; of int8, elements that are divided by their scale.
template <class Element>
LLMD_INLINE void round_to(Element* out, Vec x) {
    store(out, x);
}
LLMD_INLINE void round_to(int8_t* out, Vec codes) {
    // The first operand: a NaN becomes a code like any other, and spoils its own token alone.
    store_int8(out, round(max(min(codes, set1(127.0F)), set1(-127.0F))));
}

// Rounds through half precision and back.
LLMD_INLINE float to_half(float x, F16* out) {
    F16 rounded[Vec::kLanes];
    store(rounded, set1(x));
    *out = rounded[0];
    float wide[Vec::kLanes];
    store(wide, load(rounded));
    return wide[0];
}

// What the elements of a group are multiplied by before they are rounded.
template <class Element>
LLMD_INLINE float scale_group(const float* x, int64_t count, F16* scale) {
    if constexpr (!kScaled<Element>) return 1.0F;
    const float step = to_half(largest_magnitude(x, count) / 127.0F, scale);
    return step > 0.0F ? 1.0F / step : 0.0F;
}

// Keeps one head of one token; element i goes to out[i * stride].
template <class Element>
void write_head(const float* x, int64_t head_dim, Element* out, int64_t stride, F16* scales) {
    for (int64_t first = 0; first < head_dim; first += kKvGroup) {
        const int64_t count = head_dim - first < kKvGroup ? head_dim - first : kKvGroup;
        const float factor = scale_group<Element>(x + first, count, scales + first / kKvGroup * kBlockLen);
        for (int64_t i = 0; i < count; i += Vec::kLanes) {
            const int64_t left = count - i;
            const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
            Vec elements = load_n(x + first + i, n);
            if constexpr (kScaled<Element>) elements = elements * set1(factor);
            Element codes[Vec::kLanes];
            round_to(codes, elements);
            for (int j = 0; j < n; ++j) out[(first + i + j) * stride] = codes[j];
        }
    }
}

template <class Element>
void write_kv_as(const AttentionArgs& args, Worker& worker) {
    const KvBlocks<Element> blocks(args);
    int64_t sequence = 0;
    for (int64_t r; (r = worker.take(1)) < args.rows;) {
        while (args.row_offsets[sequence + 1] <= r) ++sequence;
        const int64_t position = args.positions[r];
        const int32_t block = args.block_table[sequence * args.table_width + position / kBlockLen];
        const int64_t token = position % kBlockLen;
        for (int64_t head = 0; head < args.kv_heads; ++head) {
            const int64_t from = (r * args.kv_heads + head) * args.head_dim;
            const auto keys = blocks.keys(block, head);
            const auto values = blocks.values(block, head);
            Element* row = values.codes + token * blocks.layout.padded_dim();
            write_head(args.k + from, args.head_dim, keys.codes + token, kBlockLen, keys.scales + token);
            write_head(args.v + from, args.head_dim, row, 1, values.scales + token);
        }
    }
}

void write_kv(const AttentionArgs& args, Worker& worker) {
    for_element(args.dtype, [&](auto element) { write_kv_as<decltype(element)>(args, worker); });
}

}  // namespace llmd::LLMD_ISA
