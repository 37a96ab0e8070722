#include "group_fit.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace llmd {

namespace {

// One place of four groups: the vectors that every x86-64 and AArch64 has.
using Lanes = float __attribute__((vector_size(16)));
constexpr int64_t kLanes = 4;
// Vectors side by side, whose sums do not wait for each other.
constexpr int64_t kWays = 2;
constexpr int64_t kTile = kWays * kLanes;

constexpr double kStretches[] = {-0.9, -0.3, 0.3, 0.9};
constexpr int kRounds = 2;

Lanes all(float value) { return Lanes{value, value, value, value}; }

#if defined(__SSE2__)
Lanes larger(Lanes a, Lanes b) { return _mm_max_ps(a, b); }
Lanes smaller(Lanes a, Lanes b) { return _mm_min_ps(a, b); }
#elif defined(__ARM_NEON)
Lanes larger(Lanes a, Lanes b) { return vmaxq_f32(a, b); }
Lanes smaller(Lanes a, Lanes b) { return vminq_f32(a, b); }
#else
Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
#endif

struct Sums {
    Lanes codes, squares, products;
};

struct Fit {
    Lanes scale, minimum;
    Sums sums;
    Lanes error;
};

// The numbers of eight groups.
template <class T>
struct Wide {
    T of[kWays];

    T& operator[](int64_t way) { return of[way]; }
    const T& operator[](int64_t way) const { return of[way]; }
};

// Numbers of the groups from `first` on; 0 for those beyond the last.
Wide<Lanes> load(const float* from, int64_t first, int64_t groups) {
    Wide<Lanes> loaded{};
    std::memcpy(&loaded, from + first, sizeof(float) * static_cast<size_t>(std::min(kTile, groups - first)));
    return loaded;
}

void store(const Wide<Lanes>& from, float* to, int64_t first, int64_t groups) {
    std::memcpy(to + first, &from, sizeof(float) * static_cast<size_t>(std::min(kTile, groups - first)));
}

void store(const Wide<Sums>& from, const GroupSums& to, int64_t first, int64_t groups) {
    store({from[0].codes, from[1].codes}, to.codes, first, groups);
    store({from[0].squares, from[1].squares}, to.squares, first, groups);
    store({from[0].products, from[1].products}, to.products, first, groups);
}

// How weights become codes.
class Rounding {
  public:
    Rounding(Lanes scale, Lanes minimum, int least, int most)
        : least_(all(static_cast<float>(least))), most_(all(static_cast<float>(most))) {
        const Lanes tiny = all(1e-30F);
        const auto usable = scale > tiny || scale < -tiny;
        inverse_ = usable ? 1.0F / (usable ? scale : all(1.0F)) : Lanes{};
        shift_ = minimum * inverse_;
    }

    // Clipped first, so that adding and taking away a number whose unit is 1 rounds to the nearest, ties to
    // even.
    Lanes operator()(Lanes weight) const {
        const Lanes unit = all(12582912.0F);  // 1.5 * 2^23
        return (smaller(larger(weight * inverse_ - shift_, least_), most_) + unit) - unit;
    }

  private:
    Lanes inverse_, shift_, least_, most_;
};

void add(Sums& sums, Lanes code, Lanes weight) {
    sums.codes += code;
    sums.squares += code * code;
    sums.products += code * weight;
}

// Eight groups of a size.
class Tile {
  public:
    Tile(const GroupedWeights& from, int64_t first) : size_(static_cast<float>(from.size)) {
        places_.reserve(static_cast<size_t>(from.size));
        for (int64_t i = 0; i < from.size; ++i)
            places_.push_back(load(from.data + i * from.groups, first, from.groups));
        total_ = low_ = high_ = places_[0];
        for (size_t i = 1; i < places_.size(); ++i) {
            for (int64_t way = 0; way < kWays; ++way) {
                total_[way] += places_[i][way];
                low_[way] = smaller(low_[way], places_[i][way]);
                high_[way] = larger(high_[way], places_[i][way]);
            }
        }
    }

    Wide<Lanes> low() const { return low_; }
    Wide<Lanes> high() const { return high_; }

    Wide<Sums> sums_of_codes(const Wide<Rounding>& rounding) const {
        Wide<Sums> sums{};
        for (const Wide<Lanes>& weights : places_) {
            for (int64_t way = 0; way < kWays; ++way) {
                add(sums[way], rounding[way](weights[way]), weights[way]);
            }
        }
        return sums;
    }

    // Least squares of the weights over the codes; as it was where all codes are the same.
    void regress(int64_t way, Fit& fit) const {
        const Sums& sums = fit.sums;
        const Lanes spread = size_ * sums.squares - sums.codes * sums.codes;
        const auto varied = spread > 0.0F;
        const Lanes fitted =
            (size_ * sums.products - total_[way] * sums.codes) / (varied ? spread : all(1.0F));
        const Lanes rest = (total_[way] - fitted * sums.codes) / size_;
        fit.scale = varied ? fitted : fit.scale;
        fit.minimum = varied ? rest : fit.minimum;
    }

    Lanes error(int64_t way, const Fit& fit) const {
        const Sums& sums = fit.sums;
        const Lanes of_scale = fit.scale * (fit.scale * sums.squares - 2.0F * sums.products);
        const Lanes of_minimum =
            fit.minimum * (size_ * fit.minimum + 2.0F * (fit.scale * sums.codes - total_[way]));
        return of_scale + of_minimum;
    }

  private:
    float size_;
    std::vector<Wide<Lanes>> places_;
    Wide<Lanes> total_, low_, high_;
};

// The same without a minimum; as it was where all codes are 0.
Lanes without_minimum(const Sums& sums, Lanes scale) {
    const auto some = sums.squares > 0.0F;
    return some ? sums.products / (some ? sums.squares : all(1.0F)) : scale;
}

Fit better(const Fit& one, const Fit& other) {
    const auto chosen = one.error < other.error;
    return {chosen ? one.scale : other.scale,
            chosen ? one.minimum : other.minimum,
            {chosen ? one.sums.codes : other.sums.codes, chosen ? one.sums.squares : other.sums.squares,
             chosen ? one.sums.products : other.sums.products},
            chosen ? one.error : other.error};
}

// Searches from each start: `start(stretch, way)` gives a fit's scale and minimum, `improve(way, fit)` better
// ones for the sums of its codes.
template <class Start, class Improve>
void search(const GroupedWeights& weights, int least, int most, const GroupFit& to, Start start,
            Improve improve) {
    for (int64_t first = 0; first < weights.groups; first += kTile) {
        const Tile tile(weights, first);
        Wide<Fit> best{};
        for (const double stretch : kStretches) {
            Wide<Fit> fit{{start(tile, stretch, 0), start(tile, stretch, 1)}};
            for (int round = 0; round < kRounds; ++round) {
                const Wide<Sums> sums = tile.sums_of_codes({{{fit[0].scale, fit[0].minimum, least, most},
                                                             {fit[1].scale, fit[1].minimum, least, most}}});
                for (int64_t way = 0; way < kWays; ++way) {
                    fit[way].sums = sums[way];
                    improve(tile, way, fit[way]);
                }
            }
            for (int64_t way = 0; way < kWays; ++way) {
                fit[way].error = tile.error(way, fit[way]);
                best[way] = stretch == kStretches[0] ? fit[way] : better(fit[way], best[way]);
            }
        }
        store({best[0].scale, best[1].scale}, to.scale, first, weights.groups);
        store({best[0].minimum, best[1].minimum}, to.minimum, first, weights.groups);
        store({best[0].sums, best[1].sums}, to.sums, first, weights.groups);
        store({best[0].error, best[1].error}, to.error, first, weights.groups);
    }
}

}  // namespace

void fit_affine(const GroupedWeights& weights, int most, bool minimum_below_zero, const GroupFit& to) {
    const auto start = [=](const Tile& tile, double stretch, int64_t way) {
        Lanes low = tile.low()[way];
        Lanes high = tile.high()[way];
        if (minimum_below_zero) {
            low = smaller(low, Lanes{});
            high = larger(high, Lanes{});
        }
        return Fit{(high - low) / static_cast<float>(most + stretch), low, {}, {}};
    };
    const auto improve = [=](const Tile& tile, int64_t way, Fit& fit) {
        tile.regress(way, fit);
        if (!minimum_below_zero) return;
        fit.scale = fit.minimum >= 0.0F ? without_minimum(fit.sums, fit.scale) : fit.scale;
        fit.minimum = smaller(fit.minimum, Lanes{});
    };
    search(weights, 0, most, to, start, improve);
}

void fit_symmetric(const GroupedWeights& weights, int half, const GroupFit& to) {
    const auto start = [=](const Tile& tile, double stretch, int64_t way) {
        const Lanes low = tile.low()[way];
        const Lanes high = tile.high()[way];
        const Lanes farthest = -low > high ? low : high;
        return Fit{farthest / static_cast<float>(-half - stretch / 2), {}, {}, {}};
    };
    const auto improve = [](const Tile&, int64_t, Fit& fit) {
        fit.scale = without_minimum(fit.sums, fit.scale);
    };
    search(weights, -half, half - 1, to, start, improve);
}

}  // namespace llmd
