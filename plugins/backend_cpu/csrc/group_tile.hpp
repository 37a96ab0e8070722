// Eight groups of plain weights, one in each lane, and sums over all weights of a group.
//
//   weights  size * 8  f32, from f32, f16 or bf16: vector i has weight i of four groups
//   sums     float32, in the order of a group's weights, without contraction

#pragma once

#include <cstring>
#include <vector>

#include "group_lanes.hpp"

namespace llmd {

enum class PlainFormat { kF32, kF16, kBF16 };

inline int64_t plain_bytes(PlainFormat format) { return format == PlainFormat::kF32 ? 4 : 2; }

struct Sums {
    Lanes codes, squares, products;
};

// How weights are rounded to codes.
class Rounding {
  public:
    Rounding(Lanes scale, Lanes minimum, float least, float most) : least_(all(least)), most_(all(most)) {
        const Lanes tiny = all(1e-30F);
        const auto usable = scale > tiny || scale < -tiny;
        inverse_ = usable ? 1.0F / (usable ? scale : all(1.0F)) : Lanes{};
        shift_ = minimum * inverse_;
    }

    // Clipping first gives the same result and stays within the range that this rounding can handle.
    Lanes operator()(Lanes weight) const { return nearest(clip(weight * inverse_ - shift_, least_, most_)); }

  private:
    Lanes inverse_, shift_, least_, most_;
};

inline Wide<Rounding> roundings_of(const Wide<Lanes>& scale, const Wide<Lanes>& minimum, float least,
                                   float most) {
    return {{{scale[0], minimum[0], least, most}, {scale[1], minimum[1], least, most}}};
}

class Tile {
  public:
    explicit Tile(int64_t size) : size_(size), places_(size), rows_(kTile * size) {}

    // Reads weights from eight addresses of any alignment; null stands for a group of zeros.
    void load(const std::byte* const (&groups)[kTile], PlainFormat format);

    int64_t size() const { return size_; }
    const Wide<Lanes>& place(int64_t i) const { return places_[static_cast<size_t>(i)]; }
    Lanes total(int way) const { return total_[way]; }
    Lanes low(int way) const { return low_[way]; }
    Lanes high(int way) const { return high_[way]; }
    // Whether all weights are finite and no larger than the formats allow.
    bool within_limits() const { return within_limits_; }

    Wide<Sums> sums_of_codes(const Wide<Rounding>& rounding) const {
        Wide<Sums> sums{};
        for (const Wide<Lanes>& weights : places_) {
            for (int way = 0; way < kWays; ++way) {
                const Lanes code = rounding[way](weights[way]);
                sums[way].codes += code;
                sums[way].squares += code * code;
                sums[way].products += code * weights[way];
            }
        }
        return sums;
    }

    // Writes codes to eight addresses, of which some may be null. `code(way, i, weights)` returns each
    // code in its lowest eight bits.
    template <class Code>
    void store(uint8_t* const (&to)[kTile], Code code) const {
        for (int way = 0; way < kWays; ++way) {
            uint8_t* const* const groups = to + way * kLanes;
            int64_t i = 0;
            for (; i + 4 <= size_; i += 4) {
                Bits four{};
                for (int k = 0; k < 4; ++k) four |= code(way, i + k, place(i + k)[way]) << (8 * k);
                for (int lane = 0; lane < kLanes; ++lane) {
                    const uint32_t bytes = four[lane];
                    if (groups[lane] != nullptr) std::memcpy(groups[lane] + i, &bytes, 4);
                }
            }
            for (; i < size_; ++i) {
                const Bits one = code(way, i, place(i)[way]);
                for (int lane = 0; lane < kLanes; ++lane) {
                    if (groups[lane] != nullptr) groups[lane][i] = static_cast<uint8_t>(one[lane]);
                }
            }
        }
    }

  private:
    int64_t size_;
    std::vector<Wide<Lanes>> places_;
    std::vector<float> rows_;  // weights row by row, as in memory
    Wide<Lanes> total_{}, low_{}, high_{};
    bool within_limits_ = true;
};

}  // namespace llmd
