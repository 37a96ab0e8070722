// The vector type of the NEON unit (armv8.2-a with dotprod): 4 float32 lanes, signed int8 dot products.

#pragma once

#include <arm_neon.h>

#include "integer_layout.hpp"
#include "simd/elements.hpp"
#include "simd/row_places.hpp"

namespace llmd::LLMD_ISA {

struct Vec {
    static constexpr int kLanes = 4;
    float32x4_t v;
};

LLMD_INLINE Vec set1(float x) { return {vdupq_n_f32(x)}; }
LLMD_INLINE Vec load(const float* p) { return {vld1q_f32(p)}; }
LLMD_INLINE Vec load(const F16* p) {
    return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))))};
}
LLMD_INLINE Vec load(const BF16* p) {
    return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p)), 16))};
}
LLMD_INLINE Vec load(const E4M3* p) {
    uint32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    const int16x8_t extended = vshlq_n_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(quad))), kE4M3Shift);
    const uint16x4_t halves = vand_u16(vreinterpret_u16_s16(vget_low_s16(extended)), vdup_n_u16(kE4M3Mask));
    return {vcvt_f32_f16(vreinterpret_f16_u16(halves))};
}
LLMD_INLINE Vec load(const int8_t* p) {
    int32_t quad;
    std::memcpy(&quad, p, sizeof quad);
    const int16x8_t halves = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(quad)));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves)))};
}
template <class Element>
LLMD_INLINE Vec load_n(const Element* p, int n) {
    if (n == Vec::kLanes) return load(p);
    Element first[4] = {};
    std::memcpy(first, p, sizeof(Element) * static_cast<size_t>(n));
    return load(first);
}
LLMD_INLINE void store(float* p, Vec a) { vst1q_f32(p, a.v); }
LLMD_INLINE void store_n(float* p, Vec a, int n) {
    if (n == Vec::kLanes) return store(p, a);
    float all[4];
    vst1q_f32(all, a.v);
    std::memcpy(p, all, sizeof(float) * static_cast<size_t>(n));
}
LLMD_INLINE void store(F16* p, Vec a) {
    vst1_u16(reinterpret_cast<uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(a.v)));
}
LLMD_INLINE void store(BF16* p, Vec a) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a.v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    // Rounding the bits of a NaN could carry into its sign.
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t number = vceqq_f32(a.v, a.v);
    vst1_u16(reinterpret_cast<uint16_t*>(p), vshrn_n_u32(vbslq_u32(number, rounded, quiet), 16));
}
// Rounds to nearest even; the result must be within -128..127.
LLMD_INLINE void store_int8(int8_t* p, Vec a) {
    const int16x4_t halves = vmovn_s32(vcvtnq_s32_f32(a.v));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    std::memcpy(p, &bytes, 4);
}

LLMD_INLINE Vec operator+(Vec a, Vec b) { return {vaddq_f32(a.v, b.v)}; }
LLMD_INLINE Vec operator-(Vec a, Vec b) { return {vsubq_f32(a.v, b.v)}; }
LLMD_INLINE Vec operator*(Vec a, Vec b) { return {vmulq_f32(a.v, b.v)}; }
LLMD_INLINE Vec operator/(Vec a, Vec b) { return {vdivq_f32(a.v, b.v)}; }
LLMD_INLINE Vec fma(Vec a, Vec b, Vec c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
LLMD_INLINE Vec max(Vec a, Vec b) { return {vmaxq_f32(a.v, b.v)}; }
LLMD_INLINE Vec min(Vec a, Vec b) { return {vminq_f32(a.v, b.v)}; }
LLMD_INLINE Vec abs(Vec a) { return {vabsq_f32(a.v)}; }
LLMD_INLINE Vec sqrt(Vec a) { return {vsqrtq_f32(a.v)}; }
LLMD_INLINE Vec round(Vec a) { return {vrndnq_f32(a.v)}; }
LLMD_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
    return {vbslq_f32(vcltq_f32(a.v, b.v), yes.v, no.v)};
}
LLMD_INLINE bool any_greater(Vec a, Vec b) { return vmaxvq_u32(vcgtq_f32(a.v, b.v)) != 0; }
LLMD_INLINE Vec power_of_two(Vec a) {
    const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(a.v), vdupq_n_s32(127));
    return {vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23))};
}
LLMD_INLINE float sum(Vec a) { return vaddvq_f32(a.v); }
LLMD_INLINE float largest(Vec a) { return vmaxvq_f32(a.v); }

constexpr int kPlainRowTile = 4;
constexpr int kFloatTile = 24;

// Integers: a record is 16 output rows by 4 inputs, four registers of four rows; both operands are signed.
constexpr int kBiasOfSigned = 0;
constexpr bool kPlainRecords = true;
constexpr bool kUnrollsBands = true;
constexpr int kScaledRows = 2;
constexpr int kCodeRows = 1;
constexpr int kRowTile = 4;
constexpr int kPanelTile = 1;
constexpr int kRowPanels = 1;
constexpr bool kPrefetches = true;
constexpr int kRowAhead = 1024;
constexpr int kTileAhead = 2048;

enum class Operand { kSigned };
constexpr Operand operand_of(int, bool) { return Operand::kSigned; }

struct Bytes {
    uint8x16_t v[4];
};
struct Book {
    int8x16_t table;
};
// One of the four quads of a register: the product selects it by `place`, so one load serves four.
struct Quad {
    int8x16_t inputs;
    int place;
};
struct Sums {
    int32x4_t v[4];
};

LLMD_INLINE Bytes load_bytes(const uint8_t* p) {
    return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
}
// Loads with one instruction, for bytes that go straight into a product; the compiler would use four
// loads.
LLMD_INLINE Bytes load_at_once(const uint8_t* p) {
    const uint8x16x4_t four = vld1q_u8_x4(p);
    return {{four.val[0], four.val[1], four.val[2], four.val[3]}};
}
LLMD_INLINE void store_bytes(uint8_t* p, Bytes a) {
    for (int i = 0; i < 4; ++i) vst1q_u8(p + 16 * i, a.v[i]);
}
static_assert(kByteCodeFlip == 128);  // panels store them signed
LLMD_INLINE Bytes from_byte_codes(Bytes a) { return a; }
template <int kShift, int kMask>
LLMD_INLINE Bytes field(Bytes a) {
    // The bits that a shift down leaves may need no mask.
    constexpr int kLeft = 255 >> (kShift > 0 ? kShift : 0);
    for (uint8x16_t& part : a.v) {
        if constexpr (kShift > 0) part = vshrq_n_u8(part, kShift);
        if constexpr (kShift < 0) part = vshlq_n_u8(part, -kShift);
        if constexpr (kLeft != kMask) part = vandq_u8(part, vdupq_n_u8(kMask));
    }
    return a;
}
template <int kShift, int kMask>
LLMD_INLINE Bytes with_field(Bytes base, Bytes a) {
    const Bytes more = field<kShift, kMask>(a);
    for (int i = 0; i < 4; ++i) base.v[i] = vorrq_u8(base.v[i], more.v[i]);
    return base;
}
// Shifts the bits of each byte down by `bits`.
LLMD_INLINE Bytes shift_down(Bytes a, int bits) {
    for (uint8x16_t& part : a.v) part = vshlq_u8(part, vdupq_n_s8(static_cast<int8_t>(-bits)));
    return a;
}
// Byte 16 l + 4 s + j of to[t] is byte 16 l + 4 t + s of of[j].
LLMD_INLINE void zip(const Bytes (&of)[4], Bytes (&to)[4]) {
    for (int l = 0; l < 4; ++l) {
        const uint8x16x2_t first = vzipq_u8(of[0].v[l], of[1].v[l]);
        const uint8x16x2_t second = vzipq_u8(of[2].v[l], of[3].v[l]);
        for (int i = 0; i < 2; ++i) {
            const uint16x8x2_t both =
                vzipq_u16(vreinterpretq_u16_u8(first.val[i]), vreinterpretq_u16_u8(second.val[i]));
            to[2 * i].v[l] = vreinterpretq_u8_u16(both.val[0]);
            to[2 * i + 1].v[l] = vreinterpretq_u8_u16(both.val[1]);
        }
    }
}
LLMD_INLINE Book load_book(const int8_t* values) { return {vld1q_s8(values)}; }
LLMD_INLINE Bytes look_up(Book book, Bytes a) {
    for (uint8x16_t& part : a.v) part = vreinterpretq_u8_s8(vqtbl1q_s8(book.table, part));
    return a;
}

// The fine scales of 16 rows, and the signed offsets to add to codes times scales. Scales have 8 bits, or
// 4 with kNibbles.
struct RowScales {
    uint8x16_t scale[4], offset[4];
};
template <bool kNibbles>
LLMD_INLINE uint8x16_t load_scale_bytes(const uint8_t* scales) {
    if constexpr (!kNibbles) return vld1q_u8(scales);
    const uint8x16_t pairs = vcombine_u8(vld1_u8(scales), vdup_n_u8(0));
    return vzip1q_u8(vandq_u8(pairs, vdupq_n_u8(15)), vshrq_n_u8(pairs, 4));
}
template <bool kNibbles>
LLMD_INLINE RowScales load_row_scales(const uint8_t* scales, const uint8_t* offsets) {
    const uint8x16_t scale = load_scale_bytes<kNibbles>(scales);
    const uint8x16_t offset = veorq_u8(vld1q_u8(offsets), vdupq_n_u8(128));
    RowScales found;
    for (int i = 0; i < 4; ++i) {
        const uint8x16_t place = vld1q_u8(kRowEverywhere.bytes + 16 * i);
        found.scale[i] = vqtbl1q_u8(scale, place);
        found.offset[i] = vqtbl1q_u8(offset, place);
    }
    return found;
}
LLMD_INLINE Bytes subtract(Bytes a, int32_t x) {
    for (uint8x16_t& part : a.v) part = vsubq_u8(part, vdupq_n_u8(static_cast<uint8_t>(x)));
    return a;
}
LLMD_INLINE Bytes apply(const RowScales& scales, Bytes a) {
    for (int i = 0; i < 4; ++i) a.v[i] = vmlaq_u8(scales.offset[i], a.v[i], scales.scale[i]);
    return a;
}

LLMD_INLINE Quad load_quad(const int8_t* p, int i) { return {vld1q_s8(p + i / 4 * 16), i % 4}; }
LLMD_INLINE Sums set_sums(int32_t x) {
    return {{vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x)}};
}
LLMD_INLINE Sums add(Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) a.v[i] = vaddq_s32(a.v[i], b.v[i]);
    return a;
}
// total + a * b, if a and b fit in int16.
LLMD_INLINE Sums add_products(Sums total, Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) total.v[i] = vmlaq_s32(total.v[i], a.v[i], b.v[i]);
    return total;
}
// Widens the fine scales of 16 rows, of 8 bits, or 4 with kNibbles.
template <bool kNibbles>
LLMD_INLINE Sums widen_row_scales(const uint8_t* scales) {
    const uint8x16_t rows = load_scale_bytes<kNibbles>(scales);
    const uint16x8_t words[2] = {vmovl_u8(vget_low_u8(rows)), vmovl_high_u8(rows)};
    Sums wide;
    for (int i = 0; i < 2; ++i) {
        wide.v[2 * i] = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words[i])));
        wide.v[2 * i + 1] = vreinterpretq_s32_u32(vmovl_high_u16(words[i]));
    }
    return wide;
}
// Keeps the compiler from loading data at `p` before these sums are computed: it would have to spill them.
LLMD_INLINE void load_after(const uint8_t*& p, const Sums& a) {
    asm("" : "+r"(p) : "w"(a.v[0]), "w"(a.v[1]), "w"(a.v[2]), "w"(a.v[3]));
}
template <int kPart>
LLMD_INLINE Vec to_float(Sums a) {
    return {vcvtq_f32_s32(a.v[kPart])};
}
// 16 signed bytes, widened to 16 bits.
struct Words {
    int16x8_t v[2];
};
LLMD_INLINE Words words_of(int8x16_t bytes) { return {{vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)}}; }
LLMD_INLINE Words load_words(const uint8_t* p) { return words_of(vreinterpretq_s8_u8(vld1q_u8(p))); }
LLMD_INLINE Words load_nibble_scales(const uint8_t* p) {
    return words_of(vreinterpretq_s8_u8(load_scale_bytes<true>(p)));
}
LLMD_INLINE Words load_offsets(const uint8_t* p) {
    return words_of(vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p), vdupq_n_u8(128))));
}
LLMD_INLINE Sums widen(Words a) {
    return {{vmovl_s16(vget_low_s16(a.v[0])), vmovl_high_s16(a.v[0]), vmovl_s16(vget_low_s16(a.v[1])),
             vmovl_high_s16(a.v[1])}};
}
LLMD_INLINE Sums add_products(Sums sums, Words a, int16_t x) {
    return {{vmlal_n_s16(sums.v[0], vget_low_s16(a.v[0]), x), vmlal_high_n_s16(sums.v[1], a.v[0], x),
             vmlal_n_s16(sums.v[2], vget_low_s16(a.v[1]), x), vmlal_high_n_s16(sums.v[3], a.v[1], x)}};
}
LLMD_INLINE int32x4_t quad_sums(const int8_t* values) {
    return vdotq_s32(vdupq_n_s32(0), vld1q_s8(values), vdupq_n_s8(1));
}
// Sums of the four segments of a line.
LLMD_INLINE void segment_sums(const int8_t* values, int32_t* sums) {
    const int32x4_t first = vpaddq_s32(quad_sums(values), quad_sums(values + 16));
    const int32x4_t second = vpaddq_s32(quad_sums(values + 32), quad_sums(values + 48));
    vst1q_s32(sums, vpaddq_s32(first, second));
}

// 64 places in 4 lines of 64 bytes: places in other lines are outside of the table, and leave the byte
// unchanged.
struct Columns {
    Bytes places;

    LLMD_INLINE_MEMBER explicit Columns(const uint8_t* p) : places(load_bytes(p)) {}
};
LLMD_INLINE Bytes gather(Columns columns, const int8_t* lines, int64_t stride) {
    Bytes found = {};
    for (int line = 0; line < 4; ++line) {
        const uint8x16x4_t bytes = vld1q_u8_x4(reinterpret_cast<const uint8_t*>(lines + line * stride));
        for (int i = 0; i < 4; ++i) {
            const uint8x16_t inside =
                vsubq_u8(columns.places.v[i], vdupq_n_u8(static_cast<uint8_t>(64 * line)));
            found.v[i] = vqtbx4q_u8(found.v[i], bytes, inside);
        }
    }
    return found;
}
template <int kShift>
LLMD_INLINE Sums shift_up(Sums a) {
    for (int32x4_t& part : a.v) part = vshlq_n_s32(part, kShift);
    return a;
}
// Signed bytes, each multiplied by its own input.
using Residuals = Bytes;
LLMD_INLINE Residuals load_residuals(const uint8_t* p) { return load_bytes(p); }
// Sums of four neighbouring products.
LLMD_INLINE Sums multiply_each(Bytes inputs, Residuals weights) {
    Sums sums = set_sums(0);
    for (int i = 0; i < 4; ++i) {
        sums.v[i] = vdotq_s32(sums.v[i], vreinterpretq_s8_u8(weights.v[i]), vreinterpretq_s8_u8(inputs.v[i]));
    }
    return sums;
}

template <Operand>
struct Accumulator {
    Sums total;

    LLMD_INLINE_MEMBER void start(int32_t x) { total = set_sums(x); }
    LLMD_INLINE_MEMBER void add(Bytes record, Quad quad) {
        if (quad.place == 0) add_products<0>(record, quad.inputs);
        if (quad.place == 1) add_products<1>(record, quad.inputs);
        if (quad.place == 2) add_products<2>(record, quad.inputs);
        if (quad.place == 3) add_products<3>(record, quad.inputs);
    }
    LLMD_INLINE_MEMBER void close() {}
    LLMD_INLINE_MEMBER Sums sums() const { return total; }

  private:
    template <int kPlace>
    LLMD_INLINE_MEMBER void add_products(Bytes record, int8x16_t inputs) {
        for (int i = 0; i < 4; ++i) {
            total.v[i] = vdotq_laneq_s32(total.v[i], vreinterpretq_s8_u8(record.v[i]), inputs, kPlace);
        }
    }
};

// Sums over 32 codes of 4 bits, times a fine scale: cheaper than multiplying each code by the scale.
struct ScaledSums {
    Sums total;

    LLMD_INLINE_MEMBER void start() { total = set_sums(0); }
    // Offsets are signed bytes, and the sum of 32 inputs fits in 16 bits.
    LLMD_INLINE_MEMBER void add(const Sums& products, Sums scales, Words offsets, int32_t q_sum) {
        for (int i = 0; i < 4; ++i) total.v[i] = vmlaq_s32(total.v[i], products.v[i], scales.v[i]);
        total = add_products(total, offsets, static_cast<int16_t>(q_sum));
    }
    LLMD_INLINE_MEMBER Sums sums() const { return total; }
};

}  // namespace llmd::LLMD_ISA
