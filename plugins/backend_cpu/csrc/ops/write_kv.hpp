// write_kv: puts the keys and values of the step into their blocks
//
//   k, v   [rows, kv_heads, head_dim]  f32
//   pool   f32, f16, bf16, int8, int4, see kv_layout.hpp     rounds to nearest even
//   int8   for each token and 32 elements of a head: scale = f16(max |x| / 127), codes rint(x / scale) within
//          +-127, by the reciprocal in f32; zeros where the scale is 0
//   int4   the same of the rotated head (ops/rotate.hpp) with scale = f16(m / -8), m the first element of the
//          largest magnitude, and codes within -8 … 7
//   work   one row at a time: what is kept of a token depends on that token alone
//   check  equal to llmd.builtin.reference.kv_formats   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/kv_blocks.hpp"
#include "ops/rotate.hpp"

namespace llmd::LLMD_ISA {

// Where one head of one token lies: keys or values of a block.
struct KvPlace {
    uint8_t* half;
    int64_t token;
    bool keys;
};

// Keeps a head as floats.
template <class Element>
void write_floats(const float* x, const KvLayout& layout, const KvPlace& place) {
    auto* out = reinterpret_cast<Element*>(place.half) +
                (place.keys ? place.token : place.token * layout.padded_dim());
    const int64_t stride = place.keys ? kBlockLen : 1;
    for (int64_t i = 0; i < layout.head_dim; i += Vec::kLanes) {
        const int64_t left = layout.head_dim - i;
        const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        Element rounded[Vec::kLanes];
        store(rounded, load_n(x + i, n));
        for (int j = 0; j < n; ++j) out[(i + j) * stride] = rounded[j];
    }
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

// What the largest code of a group stands for, divided by that code.
template <class Element>
LLMD_INLINE float step_of(const float* x) {
    float most = 0.0F;
    for (int64_t i = 0; i < kKvGroup; ++i) most = std::fabs(x[i]) > std::fabs(most) ? x[i] : most;
    return std::is_same_v<Element, Int8> ? std::fabs(most) / 127.0F : most / -8.0F;
}

// Codes [kKvGroup] of a group, whose scale goes to `scale`.
template <class Element>
LLMD_INLINE void round_group(const float* x, int8_t* codes, F16* scale) {
    constexpr float kLeast = std::is_same_v<Element, Int8> ? -127.0F : -8.0F;
    constexpr float kMost = std::is_same_v<Element, Int8> ? 127.0F : 7.0F;
    const float step = to_half(step_of<Element>(x), scale);
    const Vec inverse = set1(step != 0.0F ? 1.0F / step : 0.0F);
    for (int64_t i = 0; i < kKvGroup; i += Vec::kLanes) {
        // The first operand: a NaN becomes a code like any other, and spoils its own token alone.
        store_int8(codes + i, round(max(min(load(x + i) * inverse, set1(kMost)), set1(kLeast))));
    }
}

// Puts two codes of a group, i and i + distance, where kv_layout.hpp has them.
LLMD_INLINE void put_int8(const int8_t* codes, int64_t first, int64_t count, int64_t dim,
                          const KvPlace& place) {
    const int64_t t = place.token;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t d = first + i;
        const int64_t at = place.keys ? (d / 2 * kBlockLen + t) * 2 + d % 2 : (t / 2 * dim + d) * 2 + t % 2;
        place.half[at] = static_cast<uint8_t>(codes[i]);
    }
}
LLMD_INLINE void put_int4(const int8_t* codes, int64_t first, int64_t dim, const KvPlace& place) {
    const int64_t t = place.token;
    const int64_t distance = place.keys ? 2 : 16;  // between the elements that share a byte
    for (int64_t i = 0; i < kKvGroup / 2; ++i) {
        const int64_t low = i / distance * 2 * distance + i % distance;
        const int64_t e = first / 2 + i;
        const int64_t at =
            place.keys ? (e / 2 * kBlockLen + t) * 2 + e % 2 : (t / 2 * dim / 2 + e) * 2 + t % 2;
        place.half[at] = static_cast<uint8_t>((codes[low] + 8) | (codes[low + distance] + 8) << 4);
    }
}

// Keeps a head as codes with scales; `head` is scratch of padded_dim floats and up to kKvGroup more.
template <class Element>
void write_codes(const float* x, const KvLayout& layout, const KvPlace& place, float* head) {
    auto* scales = reinterpret_cast<F16*>(place.half + layout.scales_at()) + place.token;
    std::memcpy(head, x, sizeof(float) * static_cast<size_t>(layout.head_dim));
    if constexpr (kRotated<Element>) rotate(head, layout.head_dim);
    for (int64_t first = 0; first < layout.head_dim; first += kKvGroup) {
        for (int64_t d = layout.head_dim; d < first + kKvGroup; ++d) head[d] = 0.0F;
        int8_t codes[kKvGroup];
        round_group<Element>(head + first, codes, scales + first / kKvGroup * kBlockLen);
        const int64_t left = layout.padded_dim() - first;
        if constexpr (std::is_same_v<Element, Int8>)
            put_int8(codes, first, left < kKvGroup ? left : kKvGroup, layout.padded_dim(), place);
        else
            put_int4(codes, first, layout.padded_dim(), place);
    }
}

template <class Element>
void write_kv_as(const AttentionArgs& args, Worker& worker) {
    const KvBlocks blocks(args);
    float* scratch = args.scratch + worker.id * args.scratch_per_thread;
    const auto write = [&](const float* x, const KvPlace& place) {
        if constexpr (kCoded<Element>)
            write_codes<Element>(x, blocks.layout, place, scratch);
        else
            write_floats<Element>(x, blocks.layout, place);
    };
    int64_t sequence = 0;
    for (int64_t r; (r = worker.take(1)) < args.rows;) {
        while (args.row_offsets[sequence + 1] <= r) ++sequence;
        const int64_t position = args.positions[r];
        const int32_t block = args.block_table[sequence * args.table_width + position / kBlockLen];
        const int64_t token = position % kBlockLen;
        for (int64_t head = 0; head < args.kv_heads; ++head) {
            const int64_t from = (r * args.kv_heads + head) * args.head_dim;
            write(args.k + from, {blocks.keys(block, head), token, true});
            write(args.v + from, {blocks.values(block, head), token, false});
        }
    }
}

void write_kv(const AttentionArgs& args, Worker& worker) {
    for_element(args.dtype, [&](auto element) { write_kv_as<decltype(element)>(args, worker); });
}

}  // namespace llmd::LLMD_ISA
