// Outliers for AMX tiles. Every machine with AMX has VBMI, but the unit is compiled without it: its byte
// shuffle is written in assembly.

#pragma once

#include "ops/outliers.hpp"

namespace llmd::LLMD_ISA {

// 64 places in 4 lines of 64 bytes.
struct ByteColumns {
    __m512i places;
    __mmask64 inside[4];

    LLMD_INLINE_MEMBER explicit ByteColumns(const uint8_t* p) : places(_mm512_loadu_si512(p)) {
        const __m512i lines = _mm512_and_si512(places, _mm512_set1_epi8(-64));
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            inside[i] = _mm512_cmpeq_epi8_mask(lines, _mm512_set1_epi8(static_cast<char>(64 * i)));
        }
    }
};
LLMD_INLINE Bytes gather(const ByteColumns& columns, const int8_t* lines, int64_t stride) {
    __m512i found = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const __m512i line = _mm512_loadu_si512(lines + i * stride);
        asm("vpermb %1, %2, %0 %{%3%}"
            : "+v"(found)
            : "v"(line), "v"(columns.places), "Yk"(columns.inside[i]));
    }
    return {found};
}
using ByteOutliers = OutliersAt<ByteColumns>;

}  // namespace llmd::LLMD_ISA
