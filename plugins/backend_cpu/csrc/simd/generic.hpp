// The vector type of the generic unit: 4 float32 lanes in compiler vectors, for any machine. Multiply-adds
// round twice, because baseline machines have no fused instruction.

#pragma once

#include <cmath>

#include "integer_layout.hpp"
#include "simd/float16.hpp"

namespace llmd::LLMD_ISA {

typedef float Lanes __attribute__((vector_size(16)));
typedef int32_t IntLanes __attribute__((vector_size(16)));

struct Vec {
    static constexpr int kLanes = 4;
    Lanes v;
};

LLMD_INLINE Vec set1(float x) { return {Lanes{x, x, x, x}}; }
LLMD_INLINE Vec load(const float* p) {
    Vec a;
    std::memcpy(&a.v, p, sizeof a.v);
    return a;
}
LLMD_INLINE Vec load(const F16* p) { return {Lanes{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])}}; }
LLMD_INLINE Vec load(const BF16* p) { return {Lanes{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])}}; }
LLMD_INLINE Vec load(const E4M3* p) { return {Lanes{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])}}; }
LLMD_INLINE Vec load(const int8_t* p) {
    return {Lanes{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
                  static_cast<float>(p[3])}};
}
template <class Element>
LLMD_INLINE Vec load_n(const Element* p, int n) {
    Element first[4] = {};
    std::memcpy(first, p, sizeof(Element) * static_cast<size_t>(n));
    return load(first);
}
LLMD_INLINE void store(float* p, Vec a) { std::memcpy(p, &a.v, sizeof a.v); }
LLMD_INLINE void store_n(float* p, Vec a, int n) {
    std::memcpy(p, &a.v, sizeof(float) * static_cast<size_t>(n));
}
LLMD_INLINE void store(F16* p, Vec a) {
    for (int i = 0; i < 4; ++i) p[i] = narrow(a.v[i]);
}
LLMD_INLINE void store(BF16* p, Vec a) {
    for (int i = 0; i < 4; ++i) p[i] = narrow_bf16(a.v[i]);
}

LLMD_INLINE Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
LLMD_INLINE Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
LLMD_INLINE Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
LLMD_INLINE Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
LLMD_INLINE Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
LLMD_INLINE Vec max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
LLMD_INLINE Vec min(Vec a, Vec b) { return {a.v < b.v ? a.v : b.v}; }
LLMD_INLINE Vec abs(Vec a) { return {a.v < 0.0F ? -a.v : a.v}; }
LLMD_INLINE Vec sqrt(Vec a) {
    return {Lanes{std::sqrt(a.v[0]), std::sqrt(a.v[1]), std::sqrt(a.v[2]), std::sqrt(a.v[3])}};
}
// To nearest even, for |a| < 2^22: the sum has no bits left for a fraction.
LLMD_INLINE Vec round(Vec a) { return {(a.v + 0x1.8p23F) - 0x1.8p23F}; }
LLMD_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) { return {a.v < b.v ? yes.v : no.v}; }
LLMD_INLINE bool any_greater(Vec a, Vec b) {
    const IntLanes greater = a.v > b.v;
    return (greater[0] | greater[1] | greater[2] | greater[3]) != 0;
}
LLMD_INLINE IntLanes to_int(Vec a) { return __builtin_convertvector(a.v, IntLanes); }
LLMD_INLINE Vec power_of_two(Vec a) {
    const IntLanes bits = (to_int(a) + 127) << 23;
    Vec power;
    std::memcpy(&power.v, &bits, sizeof bits);
    return power;
}
LLMD_INLINE float sum(Vec a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
LLMD_INLINE float largest(Vec a) {
    const float even = a.v[0] > a.v[2] ? a.v[0] : a.v[2];
    const float odd = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
    return even > odd ? even : odd;
}
// Rounds to nearest even; the result must be within -128..127.
LLMD_INLINE void store_int8(int8_t* p, Vec a) {
    const IntLanes words = to_int(round(a));
    for (int i = 0; i < 4; ++i) p[i] = static_cast<int8_t>(words[i]);
}

constexpr int kPlainRowTile = 2;
constexpr int kFloatTile = 8;

// Operations on whole records are called, not inlined: each is about a hundred instructions here. Inlined,
// the unit takes twice as long to compile, and is slower.
#define LLMD_CALL [[maybe_unused, gnu::noinline]] static
#define LLMD_CALL_MEMBER [[gnu::noinline]]

// Integers: a record is 16 output rows by 4 inputs.
constexpr int kBiasOfSigned = 0;
constexpr bool kPlainRecords = false;
constexpr bool kUnrollsBands = false;
constexpr int kScaledRows = 1;
constexpr int kCodeRows = 1;
constexpr int kRowTile = 2;
constexpr int kPanelTile = 1;
constexpr int kRowPanels = 1;
constexpr bool kPrefetches = false;
constexpr int kRowAhead = 0;
constexpr int kTileAhead = 0;

enum class Operand { kSigned };
constexpr Operand operand_of(int, bool) { return Operand::kSigned; }

struct Bytes {
    uint8_t v[64];
};
struct Book {
    int8_t values[16];
};
struct Quad {
    int8_t v[4];
};
struct Sums {
    int32_t v[16];
};

LLMD_INLINE Bytes load_bytes(const uint8_t* p) {
    Bytes a;
    std::memcpy(a.v, p, sizeof a.v);
    return a;
}
LLMD_INLINE void store_bytes(uint8_t* p, const Bytes& a) { std::memcpy(p, a.v, sizeof a.v); }
LLMD_INLINE Bytes from_byte_codes(Bytes a) {
    for (uint8_t& byte : a.v) byte ^= 128U ^ kByteCodeFlip;
    return a;
}
template <int kShift, int kMask>
LLMD_INLINE Bytes field(Bytes a) {
    for (uint8_t& byte : a.v) {
        byte = static_cast<uint8_t>((kShift < 0 ? byte << -kShift : byte >> kShift) & kMask);
    }
    return a;
}
template <int kShift, int kMask>
LLMD_INLINE Bytes with_field(Bytes base, const Bytes& a) {
    const Bytes more = field<kShift, kMask>(a);
    for (int i = 0; i < 64; ++i) base.v[i] |= more.v[i];
    return base;
}
// Shifts the bits of each byte down by `bits`.
LLMD_INLINE Bytes shift_down(Bytes a, int bits) {
    for (uint8_t& byte : a.v) byte = static_cast<uint8_t>(byte >> bits);
    return a;
}
// Byte 16 l + 4 s + j of to[t] is byte 16 l + 4 t + s of of[j].
LLMD_CALL void zip(const Bytes (&of)[4], Bytes (&to)[4]) {
    for (int i = 0; i < 64; ++i) {
        for (int t = 0; t < 4; ++t) to[t].v[i] = of[i % 4].v[i / 16 * 16 + 4 * t + i % 16 / 4];
    }
}
LLMD_INLINE Book load_book(const int8_t* values) {
    Book book;
    std::memcpy(book.values, values, sizeof book.values);
    return book;
}
LLMD_INLINE Bytes look_up(const Book& book, Bytes a) {
    for (uint8_t& byte : a.v) byte = static_cast<uint8_t>(book.values[byte]);
    return a;
}

// The fine scales of 16 rows, and the signed offsets to add to codes times scales. Scales have 8 bits, or
// 4 with kNibbles.
struct RowScales {
    uint8_t scale[16], offset[16];
};
template <bool kNibbles>
LLMD_INLINE RowScales load_row_scales(const uint8_t* scales, const uint8_t* offsets) {
    RowScales found;
    for (int r = 0; r < 16; ++r) {
        found.scale[r] = kNibbles ? scales[r / 2] >> 4 * (r % 2) & 15 : scales[r];
        found.offset[r] = offsets[r] ^ 128U;
    }
    return found;
}
LLMD_INLINE Bytes apply(const RowScales& scales, Bytes a) {
    for (int i = 0; i < 64; ++i) {
        a.v[i] = static_cast<uint8_t>(a.v[i] * scales.scale[i / 4] + scales.offset[i / 4]);
    }
    return a;
}

LLMD_INLINE Quad load_quad(const int8_t* p, int i) {
    Quad quad;
    std::memcpy(quad.v, p + 4 * i, sizeof quad.v);
    return quad;
}
LLMD_INLINE Sums set_sums(int32_t x) {
    Sums sums;
    for (int32_t& lane : sums.v) lane = x;
    return sums;
}
LLMD_INLINE Sums add(Sums a, const Sums& b) {
    for (int r = 0; r < 16; ++r) a.v[r] += b.v[r];
    return a;
}
// total + a * b, if a and b fit in int16.
LLMD_INLINE Sums add_products(Sums total, const Sums& a, const Sums& b) {
    for (int r = 0; r < 16; ++r) total.v[r] += a.v[r] * b.v[r];
    return total;
}
// Widens the fine scales of 16 rows, of 8 bits, or 4 with kNibbles.
template <bool kNibbles>
LLMD_INLINE Sums widen_row_scales(const uint8_t* scales) {
    Sums wide;
    for (int r = 0; r < 16; ++r) wide.v[r] = kNibbles ? scales[r / 2] >> 4 * (r % 2) & 15 : scales[r];
    return wide;
}
template <int kPart>
LLMD_INLINE Vec to_float(const Sums& a) {
    IntLanes part;
    std::memcpy(&part, a.v + 4 * kPart, sizeof part);
    return {__builtin_convertvector(part, Lanes)};
}
// Sums of the four segments of a line.
LLMD_INLINE void segment_sums(const int8_t* values, int32_t* sums) {
    for (int segment = 0; segment < 4; ++segment) {
        sums[segment] = 0;
        for (int i = 0; i < 16; ++i) sums[segment] += values[16 * segment + i];
    }
}

template <int kShift>
LLMD_INLINE Sums shift_up(Sums a) {
    for (int32_t& lane : a.v) lane *= 1 << kShift;
    return a;
}
// Signed bytes, each multiplied by its own input.
using Residuals = Bytes;
LLMD_INLINE Residuals load_residuals(const uint8_t* p) { return load_bytes(p); }
// Sums of four neighbouring products.
LLMD_INLINE Sums multiply_each(const Bytes& inputs, const Residuals& weights) {
    Sums sums = set_sums(0);
    for (int i = 0; i < 64; ++i) {
        sums.v[i / 4] += static_cast<int8_t>(inputs.v[i]) * static_cast<int8_t>(weights.v[i]);
    }
    return sums;
}

template <Operand>
struct Accumulator {
    Sums total;

    LLMD_INLINE_MEMBER void start(int32_t x) { total = set_sums(x); }
    LLMD_CALL_MEMBER void add(const Bytes& record, Quad inputs) {
        for (int r = 0; r < 16; ++r) {
            for (int j = 0; j < 4; ++j) {
                total.v[r] += static_cast<int8_t>(record.v[4 * r + j]) * inputs.v[j];
            }
        }
    }
    LLMD_INLINE_MEMBER void close() {}
    LLMD_INLINE_MEMBER Sums sums() const { return total; }
};

// Sums over 32 codes of 4 bits, times a fine scale: cheaper than multiplying each code by the scale.
struct ScaledSums {
    Sums total;

    LLMD_INLINE_MEMBER void start() { total = set_sums(0); }
    LLMD_INLINE_MEMBER void add(const Bytes (&planes)[4], const uint8_t* scales, const uint8_t* offsets,
                                const int8_t* inputs, int32_t q_sum) {
        Accumulator<Operand::kSigned> sums;
        sums.start(0);
        for (int i = 0; i < 4; ++i) {
            sums.add(field<0, 15>(planes[i]), load_quad(inputs, 2 * i));
            sums.add(field<4, 15>(planes[i]), load_quad(inputs, 2 * i + 1));
        }
        for (int r = 0; r < 16; ++r) {
            const int scale = scales[r / 2] >> 4 * (r % 2) & 15;
            total.v[r] += sums.total.v[r] * scale + (offsets[r] - 128) * q_sum;
        }
    }
    LLMD_INLINE_MEMBER Sums sums() const { return total; }
};

}  // namespace llmd::LLMD_ISA
