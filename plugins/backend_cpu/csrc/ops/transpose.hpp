// Transposes a square of 16 by 16 numbers of 32 bits, for units with registers of that width.

#pragma once

namespace llmd::LLMD_ISA {

LLMD_INLINE void transpose(__m512i (&square)[16]) {
    __m512i pairs[16];  // of columns, from two rows in turn
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        pairs[i] = _mm512_unpacklo_epi32(square[i], square[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(square[i], square[i + 1]);
    }
    __m512i quads[16];  // 4 i + c: columns c, c + 4, c + 8 and c + 12 of rows 4 i to 4 i + 3
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        quads[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
        quads[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
        quads[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        quads[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    constexpr int kEven = 0x88;  // quarters 0 and 2 of both operands
    constexpr int kOdd = 0xdd;
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
        const __m512i even[2] = {_mm512_shuffle_i32x4(quads[c], quads[4 + c], kEven),
                                 _mm512_shuffle_i32x4(quads[8 + c], quads[12 + c], kEven)};
        const __m512i odd[2] = {_mm512_shuffle_i32x4(quads[c], quads[4 + c], kOdd),
                                _mm512_shuffle_i32x4(quads[8 + c], quads[12 + c], kOdd)};
        square[c] = _mm512_shuffle_i32x4(even[0], even[1], kEven);
        square[4 + c] = _mm512_shuffle_i32x4(odd[0], odd[1], kEven);
        square[8 + c] = _mm512_shuffle_i32x4(even[0], even[1], kOdd);
        square[12 + c] = _mm512_shuffle_i32x4(odd[0], odd[1], kOdd);
    }
}

}  // namespace llmd::LLMD_ISA
