// Products with i8mm: 8 inputs of 2 rows by 8 inputs of 2 outputs, twice as many as with dotprod. One row
// alone uses dotprod, as in the NEON unit.

#pragma once

#include "simd/neon.hpp"

namespace llmd::LLMD_ISA {

// Two rows by 16 outputs: each register holds both rows for outputs 2 i and 2 i + 1.
struct PairSums {
    int32x4_t v[8];
};
// 8 inputs of each of two rows.
struct RowPair {
    int8x16_t v;
};

LLMD_INLINE int32x4_t first_halves(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
LLMD_INLINE int32x4_t second_halves(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

LLMD_INLINE PairSums join(const Sums& first, const Sums& second) {
    PairSums joined;
    for (int i = 0; i < 4; ++i) {
        joined.v[2 * i] = first_halves(first.v[i], second.v[i]);
        joined.v[2 * i + 1] = second_halves(first.v[i], second.v[i]);
    }
    return joined;
}
LLMD_INLINE Sums first_row(const PairSums& pair) {
    Sums row;
    for (int i = 0; i < 4; ++i) row.v[i] = first_halves(pair.v[2 * i], pair.v[2 * i + 1]);
    return row;
}
LLMD_INLINE Sums second_row(const PairSums& pair) {
    Sums row;
    for (int i = 0; i < 4; ++i) row.v[i] = second_halves(pair.v[2 * i], pair.v[2 * i + 1]);
    return row;
}

// 16 inputs of each of two rows.
LLMD_INLINE void load_row_pairs(const int8_t* first, const int8_t* second, RowPair (&to)[2]) {
    const int32x4_t a = vreinterpretq_s32_s8(vld1q_s8(first));
    const int32x4_t b = vreinterpretq_s32_s8(vld1q_s8(second));
    to[0] = {vreinterpretq_s8_s32(first_halves(a, b))};
    to[1] = {vreinterpretq_s8_s32(second_halves(a, b))};
}
// Stores two records as 8 inputs of 16 outputs, with the inputs of an output together.
LLMD_INLINE void store_joined(uint8_t* p, Bytes first, Bytes second) {
    for (int i = 0; i < 4; ++i) {
        const uint32x4_t a = vreinterpretq_u32_u8(first.v[i]);
        const uint32x4_t b = vreinterpretq_u32_u8(second.v[i]);
        vst1q_u8(p + 32 * i, vreinterpretq_u8_u32(vzip1q_u32(a, b)));
        vst1q_u8(p + 32 * i + 16, vreinterpretq_u8_u32(vzip2q_u32(a, b)));
    }
}
// Loads outputs 2 i and 2 i + 1 from bytes that `store_joined` stored.
LLMD_INLINE int8x16_t load_outputs(const uint8_t* p, int i) {
    return vreinterpretq_s8_u8(vld1q_u8(p + 16 * i));
}
LLMD_INLINE int32x4_t add_products(int32x4_t sums, RowPair inputs, int8x16_t outputs) {
    return vmmlaq_s32(sums, inputs.v, outputs);
}

}  // namespace llmd::LLMD_ISA
