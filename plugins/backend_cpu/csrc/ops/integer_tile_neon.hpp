// linear, integers, several rows with NEON, one level of scales: 16 sums leave no registers for the
// totals, so totals stay in memory and are updated once per group.

#pragma once

#include "kernels.hpp"
#include "simd/functions.hpp"
// Ops in dependency order.
#include "ops/integer_tile.hpp"

namespace llmd::LLMD_ISA {

template <bool kMinimum, bool kHasOutliers, int kRows>
struct NeonTile {
    static_assert(kPanelTile == 1 && kPlainRecords);

    LLMD_INLINE_MEMBER static void multiply(const PanelBlock* panels, const BlockShape& shape,
                                            const InputTile& x, float* totals) {
        const float* x_scales = x.scales + shape.first_activation * x.rows;
        const int32_t* running = x.running + shape.first_segment * x.rows;
        int64_t group = 0;
        for (int64_t segment = 0; segment < shape.segments; ++group, x_scales += x.rows) {
            const int64_t left = shape.segments - segment;
            const int64_t segments = left < shape.group_segments ? left : shape.group_segments;
            Accumulator<Operand::kSigned> products[kRows];
            unroll<kRows>([&](auto m) LLMD_LAMBDA { products[m].start(0); });
            for (int64_t term = 0; term < (kHasOutliers ? 2 : 1); ++term) {
                TileProducts<Operand::kSigned>::template add_segments<kRows>(
                    panels, x.of_term(term), shape.first_segment, segment, segment + segments, products);
            }
            Sums sums[kRows];
            unroll<kRows>([&](auto m) LLMD_LAMBDA { sums[m] = products[m].sums(); });
            if constexpr (kHasOutliers)
                add_outliers<kRows>(panels, group, x, shape.first_segment + segment, sums);
            const int32_t* after = running + segments * x.rows;
            add_group(panels->scales + group * kPanelRows, panels->minimums + group * kPanelRows, x_scales,
                      running, after, sums, totals);
            running = after;
            segment += segments;
        }
    }

  private:
    LLMD_INLINE_MEMBER static void add_group(const float* scales, const float* minimums,
                                             const float* x_scales, const int32_t* before,
                                             const int32_t* after, const Sums (&sums)[kRows], float* totals) {
        Vec scale[kPanelVecs];
        Vec minimum[kPanelVecs];
        unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
            scale[v] = load(scales + v * Vec::kLanes);
            if constexpr (kMinimum) minimum[v] = load(minimums + v * Vec::kLanes);
        });
        unroll<kRows>([&](auto m) LLMD_LAMBDA {
            const float x_scale = x_scales[m];
            unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA {
                float* to = totals + m * kPanelRows + v * Vec::kLanes;
                Vec total = fma(to_float<v>(sums[m]), scale[v] * set1(x_scale), load(to));
                if constexpr (kMinimum) {
                    const auto of_inputs = static_cast<float>(after[m] - before[m]);
                    total = fma(minimum[v], set1(x_scale * of_inputs), total);
                }
                store(to, total);
            });
        });
    }
};

template <bool kMinimum, bool kHasOutliers, int kRows>
void neon_tile(const PanelBlock* panels, const BlockShape& shape, const InputTile& x, float* totals) {
    NeonTile<kMinimum, kHasOutliers, kRows>::multiply(panels, shape, x, totals);
}
template <bool kMinimum, bool kHasOutliers, int kRows>
struct TileOfRows<Scales<false, kMinimum>, Operand::kSigned, kHasOutliers, kRows> {
    static constexpr TileKernel kernel = neon_tile<kMinimum, kHasOutliers, kRows>;
};

}  // namespace llmd::LLMD_ISA
