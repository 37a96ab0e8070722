// write_kv: stores the keys and values of the step in their blocks
//
//   k, v   [rows, kv_heads, head_dim]  f32
//   pool   f32, f16, bf16, int8, int4, see kv_layout.hpp     rounds to nearest even
//   latent   keys only, each token in one piece
//   int8   for each token and 32 elements of a head: scale = f16(max |x| / 127), codes rint(x / scale)
//          within +-127, using the reciprocal in f32; zeros if the scale is 0
//   int4   of the rotated head (ops/rotate.hpp), negated at odd positions, for each token and 32 elements:
//          codes nearest to rint(64 x / scale) with an even sum in each quad (kv_book.hpp). Tries three
//          scales, ascending from the one whose outermost levels reach all elements; the least squared
//          error wins
//   work   the rows of one block at a time, because bits of its values share bytes; what is stored for a
//          token depends only on that token and its position
//   check  equal to llmd.builtin.reference.kv_formats   (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include "ops/kv_blocks.hpp"
#include "ops/near.hpp"
#include "ops/rotate.hpp"

namespace llmd::LLMD_ISA {

constexpr int kScalesTried = 3;

// The place of one head of one token: in the keys or the values of a block.
struct KvPlace {
    uint8_t* half;
    int64_t token;
    bool keys;
};

// Stores a head as floats.
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

// Rounds to float16 and back.
LLMD_INLINE float to_half(float x, F16* out) {
    F16 rounded[Vec::kLanes];
    store(rounded, set1(x));
    *out = rounded[0];
    float wide[Vec::kLanes];
    store(wide, load(rounded));
    return wide[0];
}

// Codes [kKvGroup] of a group: rint(x / scale) within a range.
LLMD_INLINE void divide(const float* x, float scale, float lowest, float highest, float* codes) {
    const Vec inverse = set1(scale > 0.0F ? 1.0F / scale : 0.0F);
    for (int64_t i = 0; i < kKvGroup; i += Vec::kLanes) {
        // In this operand order, NaN becomes an ordinary code and affects only its own token.
        const Vec code = min(load(x + i) * inverse, set1(highest));
        store(codes + i, round(max(code, set1(lowest))));
    }
}

LLMD_INLINE void round_int8(const float* x, float* codes, F16* scale) {
    Vec top = set1(0.0F);
    for (int64_t i = 0; i < kKvGroup; i += Vec::kLanes) top = max(top, abs(load(x + i)));
    divide(x, to_half(largest(top) / 127.0F, scale), -127.0F, 127.0F, codes);
}

// Quads of elements whose codes have lowest bits with an even sum.
constexpr int64_t kQuads = kKvGroup / 4;
LLMD_INLINE int64_t quad_element(int64_t quad, int64_t member) {
    return 2 * quad + member % 2 + member / 2 * kBlockLen;
}

// Rounds a group, given in whole levels, to codes [kKvGroup]; returns the sum of their squared errors.
LLMD_INLINE int32_t round_to_book(const float* x, uint8_t* codes) {
    int32_t squares = 0;
    for (int64_t quad = 0; quad < kQuads; ++quad) {
        const NearCodes* near[4];
        int32_t odd = 0;
        int64_t least = 0;
        for (int64_t i = 0; i < 4; ++i) {
            const int64_t e = quad_element(quad, i);
            near[i] = kNearest.at + static_cast<int32_t>(x[e]) + kReach;
            codes[e] = near[i]->code;
            squares += near[i]->square;
            odd ^= near[i]->code & 1;
            if (near[i]->detour < near[least]->detour) least = i;
        }
        if (odd == 0) continue;
        codes[quad_element(quad, least)] = near[least]->other;
        squares += near[least]->detour;
    }
    return squares;
}

// Returns the scale.
LLMD_INLINE uint8_t round_int4(const float* x, uint8_t* codes) {
    float low = x[0];
    float high = x[0];
    for (int64_t i = 1; i < kKvGroup; ++i) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    const float above = high / static_cast<float>(kBook[kLevels - 1]);
    const float below = low / static_cast<float>(kBook[0]);
    F16 widest[1];
    to_half((above > below ? above : below) * kBookScale, widest);
    float best = __builtin_inff();
    uint8_t kept = 0;
    for (int tried = 0; tried < kScalesTried; ++tried) {
        const auto byte = static_cast<uint8_t>((((widest[0].bits & 0x7fff) + 64) >> 7) + tried);
        const F16 scale[Vec::kLanes] = {{static_cast<uint16_t>(byte << 7)}};
        float wide[Vec::kLanes];
        store(wide, load(scale));
        float rounded[kKvGroup];
        constexpr float kFarthest = kReach;
        divide(x, wide[0] / kBookScale, -kFarthest, kFarthest, rounded);
        uint8_t codes_tried[kKvGroup];
        const auto squares = static_cast<float>(round_to_book(rounded, codes_tried));
        const float off = squares * wide[0] * wide[0];
        if (tried > 0 && !(off < best)) continue;
        best = off;
        kept = byte;
        std::memcpy(codes, codes_tried, sizeof codes_tried);
    }
    return kept;
}

// Writes the codes of a group in the layout of kv_layout.hpp.
LLMD_INLINE void put_int8(const float* codes, int64_t first, int64_t count, int64_t dim,
                          const KvPlace& place) {
    const int64_t t = place.token;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t d = first + i;
        const int64_t at = place.keys ? (d / 2 * kBlockLen + t) * 2 + d % 2 : (t / 2 * dim + d) * 2 + t % 2;
        place.half[at] = static_cast<uint8_t>(static_cast<int8_t>(codes[i]));
    }
}
LLMD_INLINE void put_bit(uint8_t* byte, int64_t number, uint8_t code) {
    *byte = static_cast<uint8_t>((*byte & ~(1 << number)) | (code & 1) << number);
}
LLMD_INLINE void put_int4(const uint8_t* codes, uint8_t scale, int64_t first, const KvLayout& layout,
                          const KvPlace& place) {
    const int64_t t = place.token;
    const int64_t distance = place.keys ? 2 : 16;  // distance of the elements that share a byte
    for (int64_t i = 0; i < kKvGroup / 2; ++i) {
        const int64_t low = i / distance * 2 * distance + i % distance;
        const int64_t e = first / 2 + i;
        const int64_t at = place.keys ? (e / 2 * kBlockLen + t) * 2 + e % 2
                                      : (t / 2 * layout.padded_dim() / 2 + e) * 2 + t % 2;
        place.half[at] = static_cast<uint8_t>(codes[low] / 2 | codes[low + distance] / 2 << 4);
    }
    uint8_t* bits = place.half + layout.scales_at() + first / kKvGroup * kBitsOfGroup;
    uint8_t* few = bits + kFewBitsAt;
    for (int64_t e = 0; e < kBlockLen; ++e) {
        if (place.keys)
            put_bit(bits + 2 * t + e % 2, e / 2, codes[e]);
        else
            put_bit(bits + 2 * e + t % 2, t / 2, codes[e]);
    }
    for (int64_t pair = 0; pair < kQuads; ++pair) {
        const uint8_t code = codes[kBlockLen + 2 * pair];
        if (place.keys)
            put_bit(few + t, pair, code);
        else
            put_bit(few + 2 * pair + t % 2, t / 2, code);
    }
    bits[kByteScalesAt + t] = scale;
}

// Stores a head as codes with scales; `head` is scratch of padded_dim floats and up to kKvGroup more.
template <class Element>
void write_codes(const float* x, const KvLayout& layout, const KvPlace& place, float* head) {
    const int64_t dim = layout.padded_dim();
    std::memcpy(head, x, sizeof(float) * static_cast<size_t>(layout.head_dim));
    if constexpr (kRotated<Element>) rotate(head, layout.head_dim);
    if (std::is_same_v<Element, Int4> && place.token % 2 != 0) {
        for (int64_t d = 0; d < layout.head_dim; ++d) head[d] = -head[d];
    }
    for (int64_t first = 0; first < layout.head_dim; first += kKvGroup) {
        // A short group is padded with its last element, which changes neither its smallest nor its
        // largest element.
        for (int64_t d = layout.head_dim; d < first + kKvGroup; ++d) head[d] = head[layout.head_dim - 1];
        if constexpr (std::is_same_v<Element, Int8>) {
            float codes[kKvGroup];
            auto* scales = reinterpret_cast<F16*>(place.half + layout.scales_at());
            round_int8(head + first, codes, scales + first / kKvGroup * kBlockLen + place.token);
            put_int8(codes, first, dim - first < kKvGroup ? dim - first : kKvGroup, dim, place);
        } else {
            uint8_t codes[kKvGroup];
            const uint8_t scale = round_int4(head + first, codes);
            put_int4(codes, scale, first, layout, place);
        }
    }
}

// Stores a vector of `count` floats.
template <class Element>
LLMD_INLINE void write_vector(const float* x, int64_t count, Element* out) {
    for (int64_t i = 0; i < count; i += Vec::kLanes) {
        const int64_t left = count - i;
        const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        Element rounded[Vec::kLanes];
        store(rounded, load_n(x + i, n));
        std::memcpy(out + i, rounded, sizeof(Element) * static_cast<size_t>(n));
    }
}

// Stores latent vectors: that of each row, or of the rows that complete one.
template <class Element>
void write_latent(const AttentionArgs& args, Worker& worker) {
    const KvBlocks blocks(args);
    int64_t sequence = 0;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        if (r < args.row_offsets[sequence]) sequence = 0;
        while (args.row_offsets[sequence + 1] <= r) ++sequence;
        if ((args.tokens[r] + 1) % args.stride != 0) return;
        const int64_t vector = args.tokens[r] / args.stride;
        const int32_t block = args.block_table[sequence * args.table_width + vector / args.vectors];
        for (int64_t head = 0; head < args.kv_heads; ++head) {
            const float* from = args.k + (r * args.kv_heads + head) * args.head_dim;
            auto* to = reinterpret_cast<Element*>(blocks.keys(block, head));
            write_vector(from, args.head_dim, to + vector % args.vectors * blocks.layout.padded_dim());
        }
    });
}

template <class Element>
void write_kv_as(const AttentionArgs& args, Worker& worker) {
    if constexpr (!kCoded<Element>) {
        if (args.latent) return write_latent<Element>(args, worker);
    }
    const KvBlocks blocks(args);
    float* scratch = args.scratch + worker.id * args.scratch_per_thread;
    const auto write = [&](const float* x, const KvPlace& place) {
        if constexpr (kCoded<Element>)
            write_codes<Element>(x, blocks.layout, place, scratch);
        else
            write_floats<Element>(x, blocks.layout, place);
    };
    int64_t sequence = 0;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        if (r < args.row_offsets[sequence]) sequence = 0;
        while (args.row_offsets[sequence + 1] <= r) ++sequence;
        if (r > args.row_offsets[sequence] && args.positions[r] % kBlockLen != 0) return;
        const int64_t first = args.positions[r];
        const int32_t block = args.block_table[sequence * args.table_width + first / kBlockLen];
        const int64_t behind = first / kBlockLen * kBlockLen + kBlockLen;
        for (int64_t row = r; row < args.row_offsets[sequence + 1] && args.positions[row] < behind; ++row) {
            const int64_t token = args.positions[row] % kBlockLen;
            for (int64_t head = 0; head < args.kv_heads; ++head) {
                const int64_t from = (row * args.kv_heads + head) * args.head_dim;
                write(args.k + from, {blocks.keys(block, head), token, true});
                write(args.v + from, {blocks.values(block, head), token, false});
            }
        }
    });
}

void write_kv(const AttentionArgs& args, Worker& worker) {
    for_element(args.dtype, [&](auto element) { write_kv_as<decltype(element)>(args, worker); });
}

}  // namespace llmd::LLMD_ISA
