// write_kv: puts the keys and values of the step into their blocks
//
//   k, v   [rows, kv_heads, head_dim]  f32
//   pool   f32, f16, bf16, int8, int4, see kv_layout.hpp     rounds to nearest even
//   int8   for each token and 32 elements of a head: scale = f16(max |x| / 127), codes rint(x / scale) within
//          +-127, by the reciprocal in f32; zeros where the scale is 0
//   int4   of the rotated head (ops/rotate.hpp), for each token and 32 elements from l to h: with c = (h - l)
//   * i
//          / 64 for i = 0 … 4, least = f16(l + c), scale = f16((h - l - 2 c) / 15), codes rint((x - least) /
//          scale) within 0 … 15; the i that leaves the least squares, the first of equal ones
//   work   one row at a time: what is kept of a token depends on that token alone
//   check  equal to llmd.builtin.reference.kv_formats   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/kv_blocks.hpp"
#include "ops/rotate.hpp"

namespace llmd::LLMD_ISA {

constexpr int kInsets = 5;

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

// What is kept of a group beside its codes, [16 tokens] apart: the scale, and for int4 the least element.
struct KvScale {
    F16* scale;
    F16* least;
};

// Codes [kKvGroup] of a group, in place: rint((x - least) / step) within its range.
LLMD_INLINE void divide(const float* x, float least, float step, float lowest, float highest, float* codes) {
    const Vec inverse = set1(step > 0.0F ? 1.0F / step : 0.0F);
    for (int64_t i = 0; i < kKvGroup; i += Vec::kLanes) {
        // The first operand: a NaN becomes a code like any other, and spoils its own token alone.
        const Vec code = min((load(x + i) - set1(least)) * inverse, set1(highest));
        store(codes + i, round(max(code, set1(lowest))));
    }
}

LLMD_INLINE void round_int8(const float* x, float* codes, const KvScale& to) {
    Vec top = set1(0.0F);
    for (int64_t i = 0; i < kKvGroup; i += Vec::kLanes) top = max(top, abs(load(x + i)));
    divide(x, 0.0F, to_half(largest(top) / 127.0F, to.scale), -127.0F, 127.0F, codes);
}

// Sum of squared distances between elements and what their codes stand for, in the order of docs/ops.md.
LLMD_INLINE float distance(const float* x, const float* codes, float least, float step) {
    float squares[kKvGroup];
    for (int64_t i = 0; i < kKvGroup; i += Vec::kLanes) {
        const Vec off = load(codes + i) * set1(step) + set1(least) - load(x + i);
        store(squares + i, off * off);
    }
    for (int64_t half = kKvGroup / 2; half > 0; half /= 2) {
        for (int64_t i = 0; i < half; ++i) squares[i] += squares[i + half];
    }
    return squares[0];
}

LLMD_INLINE void round_int4(const float* x, float* codes, const KvScale& to) {
    float low = x[0];
    float high = x[0];
    for (int64_t i = 1; i < kKvGroup; ++i) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    float best = __builtin_inff();
    for (int inset = 0; inset < kInsets; ++inset) {
        const float cut = (high - low) * (static_cast<float>(inset) / 64.0F);
        F16 scale[1];
        F16 first[1];
        const float least = to_half(low + cut, first);
        const float step = to_half((high - low - 2.0F * cut) / 15.0F, scale);
        float tried[kKvGroup];
        divide(x, least, step, 0.0F, 15.0F, tried);
        const float off = distance(x, tried, least, step);
        if (inset > 0 && !(off < best)) continue;
        best = off;
        *to.scale = scale[0];
        *to.least = first[0];
        std::memcpy(codes, tried, sizeof tried);
    }
}

// Puts the codes of a group where kv_layout.hpp has them.
LLMD_INLINE void put_int8(const float* codes, int64_t first, int64_t count, int64_t dim,
                          const KvPlace& place) {
    const int64_t t = place.token;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t d = first + i;
        const int64_t at = place.keys ? (d / 2 * kBlockLen + t) * 2 + d % 2 : (t / 2 * dim + d) * 2 + t % 2;
        place.half[at] = static_cast<uint8_t>(static_cast<int8_t>(codes[i]));
    }
}
LLMD_INLINE void put_int4(const float* codes, int64_t first, int64_t dim, const KvPlace& place) {
    const int64_t t = place.token;
    const int64_t distance = place.keys ? 2 : 16;  // between the elements that share a byte
    for (int64_t i = 0; i < kKvGroup / 2; ++i) {
        const int64_t low = i / distance * 2 * distance + i % distance;
        const int64_t e = first / 2 + i;
        const int64_t at =
            place.keys ? (e / 2 * kBlockLen + t) * 2 + e % 2 : (t / 2 * dim / 2 + e) * 2 + t % 2;
        place.half[at] = static_cast<uint8_t>(codes[low] + 16.0F * codes[low + distance]);
    }
}

// Keeps a head as codes with scales; `head` is scratch of padded_dim floats and up to kKvGroup more.
template <class Element>
void write_codes(const float* x, const KvLayout& layout, const KvPlace& place, float* head) {
    auto* scales = reinterpret_cast<F16*>(place.half + layout.scales_at()) + place.token;
    const int64_t dim = layout.padded_dim();
    std::memcpy(head, x, sizeof(float) * static_cast<size_t>(layout.head_dim));
    if constexpr (kRotated<Element>) rotate(head, layout.head_dim);
    for (int64_t first = 0; first < layout.head_dim; first += kKvGroup) {
        // A short group repeats its last element, which changes neither its least nor its largest.
        for (int64_t d = layout.head_dim; d < first + kKvGroup; ++d) head[d] = head[layout.head_dim - 1];
        F16* scale = scales + first / kKvGroup * kBlockLen;
        const KvScale to{scale, scale + layout.groups() * kBlockLen};
        float codes[kKvGroup];
        if constexpr (std::is_same_v<Element, Int8>) {
            round_int8(head + first, codes, to);
            put_int8(codes, first, dim - first < kKvGroup ? dim - first : kKvGroup, dim, place);
        } else {
            round_int4(head + first, codes, to);
            put_int4(codes, first, dim, place);
        }
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
