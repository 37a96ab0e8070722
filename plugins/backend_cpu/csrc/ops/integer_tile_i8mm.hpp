// linear, integers, several rows with i8mm: rows of a tile are multiplied by blocks in pairs.
//
//   block  two records joined: 16 bytes hold 8 inputs of 2 outputs
//   tile   as in ops/integer_tile.hpp; if the number of rows is odd, the last row is paired with itself

#pragma once

#include "kernels.hpp"
#include "simd/functions.hpp"
// Ops in dependency order.
#include "ops/integer_tile.hpp"

namespace llmd::LLMD_ISA {

template <>
struct TileProducts<Operand::kSigned> {
    LLMD_INLINE_MEMBER static void store(uint8_t* to, Bytes first, Bytes second) {
        store_joined(to, first, second);
    }

    template <int kRows>
    LLMD_INLINE_MEMBER static void add_segments(const PanelBlock* panels, const InputTile& x,
                                                int64_t first_segment, int64_t segment, int64_t end,
                                                Accumulator<Operand::kSigned> (&sums)[kRows]) {
        static_assert(kPanelTile == 1);
        constexpr int kPairs = (kRows + 1) / 2;
        constexpr int kSegmentBytes = static_cast<int>(kSegmentInputs * kPanelRows);
        PairSums pairs[kPairs];
        unroll<kPairs>(
            [&](auto p) LLMD_LAMBDA { pairs[p] = join(sums[2 * p].total, sums[second_of<kRows>(p)].total); });
        for (; segment < end; ++segment) {
            const int8_t* inputs = x.segment(first_segment + segment);
            RowPair rows[kPairs][2];
            unroll<kPairs>([&](auto p) LLMD_LAMBDA {
                load_row_pairs(inputs + 2 * p * kLineInputs, inputs + second_of<kRows>(p) * kLineInputs,
                               rows[p]);
            });
            const uint8_t* records = panels[0].records + kSegmentBytes * segment;
            unroll<16>([&](auto i) LLMD_LAMBDA {
                const int8x16_t outputs = load_outputs(records, i);
                unroll<kPairs>([&](auto p) LLMD_LAMBDA {
                    int32x4_t& sum = pairs[p].v[i % 8];
                    sum = add_products(sum, rows[p][i / 8], outputs);
                });
            });
        }
        unroll<kPairs>([&](auto p) LLMD_LAMBDA {
            sums[2 * p].total = first_row(pairs[p]);
            if constexpr (2 * p + 1 < kRows) sums[2 * p + 1].total = second_row(pairs[p]);
        });
    }

  private:
    template <int kRows>
    static constexpr int second_of(int pair) {
        return 2 * pair + 1 < kRows ? 2 * pair + 1 : 2 * pair;
    }
};

}  // namespace llmd::LLMD_ISA
