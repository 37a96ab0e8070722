// How integer sums become outputs, for one row and for tiles.
//
//   one level   total += sum * (scale * x_scale);  total += minimum * (x_scale * q_sum)
//   in int8     as one level, without minimums: fine scales and minimums are already in the integers
//   two levels  inner = sum over weight groups of sum * fine;  total += inner * (coarse * x_scale)
//               inner = sum over weight groups of fine minimum * q_sum;
//               total += inner * (coarse minimum * x_scale)
//   order       each += is one multiply-add, and groups ascend: the same for any number of rows and any
//               tile, and therefore the same bits. Sums of integers are exact, and so is the inner sum of
//               minimums. A sum times a fine scale is an integer below 2^24: adding it as a float rounds like
//               the multiply-add. The first groups may be added as integers, while no sum can exceed 2^24

#pragma once

namespace llmd::LLMD_ISA {

constexpr int kPanelVecs = static_cast<int>(kPanelRows) / Vec::kLanes;

template <bool kTwoLevels_, bool kMinimum_>
struct Scales {
    static constexpr bool kTwoLevels = kTwoLevels_;
    static constexpr bool kMinimum = kMinimum_;
};

// Calls f(Scales<…>) for the scales of a format, whose codes are C.
template <class C, class F>
LLMD_INLINE void with_scales(const IntegerFormat& format, F&& f) {
    const bool two_levels = format.two_levels() && !format.in_int8;
    const bool minimum = format.has_minimum && !format.in_int8;
    unroll<4>([&](auto i) LLMD_LAMBDA {
        constexpr bool kTwoLevels = i / 2 == 1;
        constexpr bool kMinimum = i % 2 == 1;
        if constexpr (scales_suit(C::kScaleSegments > 0 ? 8 : C::kBits, C::kBook, kTwoLevels, kMinimum)) {
            if (two_levels == kTwoLevels && minimum == kMinimum) f(Scales<kTwoLevels, kMinimum>{});
        }
    });
}

// Part `part` of 16 coarse scales.
LLMD_INLINE Vec load_coarse(const uint8_t* p, int part, bool bf16) {
    if (bf16) return load(reinterpret_cast<const BF16*>(p) + part * Vec::kLanes);
    return load(reinterpret_cast<const F16*>(p) + part * Vec::kLanes);
}
LLMD_INLINE Vec load_fine(const uint8_t* p, int part) {
    return load(reinterpret_cast<const int8_t*>(p) + part * Vec::kLanes);
}

// Where the outputs of a tile go.
struct TileOut {
    float* out;         // first row and output of the tile
    const float* bias;  // of the first output, or null
    int64_t stride;     // between rows
    int64_t columns;    // outputs that exist
};

// Writes outputs 16 panel … of row m of a tile.
LLMD_INLINE void finish_panel(const TileOut& to, int64_t m, int64_t panel, const float* totals) {
    for (int v = 0; v < kPanelVecs; ++v) {
        const int64_t first = panel * kPanelRows + v * Vec::kLanes;
        const int64_t left = to.columns - first;
        const int n = left < 0 ? 0 : left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        if (n == 0) return;
        const Vec offset = to.bias == nullptr ? set1(0.0F) : load_n(to.bias + first, n);
        store_n(to.out + m * to.stride + first, load(totals + v * Vec::kLanes) + offset, n);
    }
}

// The same for a tile of one panel, whose totals are in registers.
LLMD_INLINE void finish_row(const TileOut& to, int64_t m, const Vec* totals) {
    float values[kPanelRows];
    unroll<kPanelVecs>([&](auto v) LLMD_LAMBDA { store(values + v * Vec::kLanes, totals[v]); });
    finish_panel(to, m, 0, values);
}

}  // namespace llmd::LLMD_ISA
