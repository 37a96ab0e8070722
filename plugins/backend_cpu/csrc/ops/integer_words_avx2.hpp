// linear, integers, several rows with AVX2: sums of products in 16 bits, and their kernels for a number of
// rows.
//
//   words    each of the 16 outputs has two: a product instruction adds those of inputs 0 and 1 of a record
//            into the first, and of inputs 2 and 3 into the second
//   widened  by a multiplication that also adds the two: by a fine scale, or by 1

#pragma once

#include "kernels.hpp"
#include "simd/functions.hpp"
// Ops in dependency order.
#include "ops/integer_panels.hpp"

namespace llmd::LLMD_ISA {

// Makes the compiler leave totals in memory: otherwise it keeps them in registers from one group to the next.
LLMD_INLINE float* keep_in_memory(float* totals) {
    asm volatile("" : "+r"(totals));
    return totals;
}

// Adds the products of kQuads records and of kRows rows, whose inputs are kLineInputs apart, to words. Only
// inputs have a sign, or with kSigned only records.
template <int kQuads, bool kSigned, int kRows>
LLMD_INLINE void add_words(const uint8_t* records, const int8_t* inputs, Sums (&words)[kRows]) {
    unroll<kQuads>([&](auto q) LLMD_LAMBDA {
        const Bytes record = load_bytes(records + 64 * q);
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const __m256i quad = load_quad(inputs + m * kLineInputs, q).v;
            const auto multiply = [&](__m256i of) LLMD_LAMBDA {
                return kSigned ? _mm256_maddubs_epi16(quad, of) : _mm256_maddubs_epi16(of, quad);
            };
            Sums& to = words[m];
            to.low = _mm256_add_epi16(to.low, multiply(record.low));
            to.high = _mm256_add_epi16(to.high, multiply(record.high));
            keep_order(to.low, to.high);
        });
    });
}

// Sums the inputs of consecutive pairs of groups of kSegments: `to` is [pairs][kRows], two words each.
template <int kSegments, int kRows>
LLMD_INLINE void sum_inputs(const int32_t* before, int64_t rows, int64_t pairs, int32_t* to) {
    for (int64_t i = 0; i < pairs; ++i) {
        const int32_t* between = before + kSegments * rows;
        const int32_t* after = between + kSegments * rows;
        for (int64_t m = 0; m < kRows; ++m) {
            const int32_t second = after[m] - between[m];
            to[i * kRows + m] = second * 65536 + ((between[m] - before[m]) & 0xffff);
        }
        before = after;
    }
}

// Calls f(Index<rows>), for up to kRows rows.
template <int kRows = kRowTile, class F>
LLMD_INLINE void with_rows(int64_t rows, F&& f) {
    if constexpr (kRows > 1) {
        if (rows < kRows) return with_rows<kRows - 1>(rows, f);
    }
    f(Index<kRows>{});
}

}  // namespace llmd::LLMD_ISA
