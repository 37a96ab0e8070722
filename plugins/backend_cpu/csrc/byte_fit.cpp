#include "byte_fit.hpp"

#include <algorithm>
#include <limits>

#include "float16.hpp"

namespace llmd {

namespace {

constexpr float kLeast = -128.0F;
constexpr float kMost = 127.0F;
constexpr double kStretches[] = {1.0, 1.05, 1.1, 1.16};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Wide<Rounding> rounding_of(const Wide<Lanes>& scale, const Wide<Lanes>& minimum, Lanes coarse, float most) {
    return roundings_of({scale[0] * coarse, scale[1] * coarse}, {-minimum[0] * coarse, -minimum[1] * coarse},
                        0.0F, most);
}

// Sums numbers of all groups of a block in the order in which NumPy adds contiguous numbers.
class BlockSum {
  public:
    void add(int way, Lanes numbers) { lanes_[way] += numbers; }
    float total() const { return of_four(lanes_[0]) + of_four(lanes_[1]); }

  private:
    static float of_four(Lanes four) { return (four[0] + four[1]) + (four[2] + four[3]); }

    Wide<Lanes> lanes_{};
};

// The best fits of a block without the limits of a byte, and the scales near them that a byte can hold.
class Search {
  public:
    Search(std::span<const Tile> block, int most, int most_scale)
        : block_(block), most_(static_cast<float>(most)), most_scale_(static_cast<float>(most_scale)) {
        for (size_t number = 0; number < block.size(); ++number) {
            free_[number] = fit_affine(block[number], most, true);
        }
    }

    // The smallest coarse scale with which every group fits.
    float needed() const {
        Lanes most = Lanes{};
        for (size_t number = 0; number < block_.size(); ++number) {
            for (const Fit& fit : free_[number].of) {
                const Lanes ends = larger(fit.minimum / kLeast, (fit.minimum + fit.scale * most_) / kMost);
                most = larger(most, larger(ends, fit.scale / most_scale_));
            }
        }
        return std::max({most[0], most[1], most[2], most[3]});
    }

    // The coarse scale with which the codes of the unlimited fits lose least.
    std::optional<uint16_t> coarse() const {
        const float least = needed();
        uint16_t found = 0;
        float error = kInfinity;
        for (const double stretch : kStretches) {
            const uint16_t coarse = float16_from(least * static_cast<float>(stretch));
            if (!is_finite_float16(coarse)) return std::nullopt;
            const float lost = lost_with(all(from_float16(coarse)));
            if (lost < error) found = coarse;
            error = std::min(lost, error);
        }
        return found;
    }

    // Finds the fine scales of a tile that lose least with codes of their own, and the matching minimums.
    void choose_scales(size_t number, Lanes coarse, Wide<Lanes>& found_scale,
                       Wide<Lanes>& found_minimum) const {
        const Tile& tile = block_[number];
        Wide<Lanes> least{{all(kInfinity), all(kInfinity)}};
        found_scale = found_minimum = {{coarse, coarse}};
        for (const float above : {0.0F, 1.0F}) {
            Wide<Lanes> scale, minimum;
            for (int way = 0; way < kWays; ++way) {
                const Fit& fit = free_[number][way];
                scale[way] = beside(fit, coarse, above);
                const Lanes shorter = (scale[way] * coarse - fit.scale) * (most_ / 2);
                minimum[way] = fitting(scale[way], ratio(shorter - fit.minimum, coarse));
            }
            const Wide<Sums> sums = tile.sums_of_codes(rounding_of(scale, minimum, coarse, most_));
            for (int way = 0; way < kWays; ++way) {
                minimum[way] = minimum_of(tile, way, scale[way], coarse, sums[way]);
                const Lanes error =
                    error_of(tile, way, scale[way] * coarse, -minimum[way] * coarse, sums[way]);
                const auto better = error < least[way];
                found_scale[way] = better ? scale[way] : found_scale[way];
                found_minimum[way] = better ? minimum[way] : found_minimum[way];
                least[way] = smaller(error, least[way]);
            }
        }
    }

  private:
    float lost_with(Lanes coarse) const {
        BlockSum sum;
        for (size_t number = 0; number < block_.size(); ++number) {
            const Tile& tile = block_[number];
            for (int way = 0; way < kWays; ++way) {
                const Fit& fit = free_[number][way];
                Lanes lost = all(kInfinity);
                for (const float above : {0.0F, 1.0F}) {
                    const Lanes scale = beside(fit, coarse, above);
                    const Lanes minimum = minimum_of(tile, way, scale, coarse, fit.sums);
                    lost = smaller(lost, error_of(tile, way, scale * coarse, -minimum * coarse, fit.sums));
                }
                sum.add(way, lost);
            }
        }
        return sum.total();
    }

    Lanes beside(const Fit& fit, Lanes coarse, float above) const {
        return clip(whole_below(ratio(fit.scale, coarse)) + above, Lanes{}, all(most_scale_));
    }

    // The minimum that fits given codes best.
    Lanes minimum_of(const Tile& tile, int way, Lanes scale, Lanes coarse, const Sums& sums) const {
        const Lanes missing = scale * coarse * sums.codes - tile.total(way);
        return fitting(scale, ratio(missing / static_cast<float>(tile.size()), coarse));
    }

    // Limits a minimum to integers with which every weight fits in int8.
    Lanes fitting(Lanes scale, Lanes minimum) const {
        return nearest(clip(minimum, larger(scale * most_ - kMost, Lanes{}), all(-kLeast)));
    }

    std::span<const Tile> block_;
    float most_, most_scale_;
    Wide<Fit> free_[kMostTiles];
};

// The coarse scale that fits the chosen integers best.
float least_squares(std::span<const Tile> block, const ByteFit& fit, int most) {
    BlockSum products, squares;
    for (size_t number = 0; number < block.size(); ++number) {
        const Wide<Sums> sums = block[number].sums_of_codes(fit.rounding(number, most));
        const auto size = static_cast<float>(block[number].size());
        for (int way = 0; way < kWays; ++way) {
            const Lanes scale = fit.scale[number][way];
            const Lanes minimum = fit.minimum[number][way];
            products.add(way, scale * sums[way].products - minimum * block[number].total(way));
            squares.add(way, scale * (scale * sums[way].squares - 2.0F * minimum * sums[way].codes) +
                                 minimum * minimum * size);
        }
    }
    const float there = squares.total();
    return there > 0.0F ? products.total() / there : 0.0F;
}

}  // namespace

Wide<Rounding> ByteFit::rounding(size_t tile, int most) const {
    return rounding_of(scale[tile], minimum[tile], all(from_float16(coarse)), static_cast<float>(most));
}

std::optional<ByteFit> fit_bytes(std::span<const Tile> block, int most, int most_scale) {
    const Search search(block, most, most_scale);
    const std::optional<uint16_t> coarse = search.coarse();
    if (!coarse) return std::nullopt;
    ByteFit fit{};
    fit.coarse = *coarse;
    for (size_t number = 0; number < block.size(); ++number) {
        search.choose_scales(number, all(from_float16(fit.coarse)), fit.scale[number], fit.minimum[number]);
    }
    fit.coarse = to_float16(least_squares(block, fit, most));
    if (!is_finite_float16(fit.coarse)) return std::nullopt;
    return fit;
}

}  // namespace llmd
