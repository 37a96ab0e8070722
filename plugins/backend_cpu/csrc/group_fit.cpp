#include "group_fit.hpp"

namespace llmd {

namespace {

constexpr double kStretches[] = {-0.9, -0.3, 0.3, 0.9};
constexpr int kRounds = 2;

// Fits scale and minimum to the codes by least squares. Leaves them unchanged if all codes are equal.
void regress(const Tile& tile, int way, Fit& fit) {
    const auto size = static_cast<float>(tile.size());
    const Sums& sums = fit.sums;
    const Lanes spread = size * sums.squares - sums.codes * sums.codes;
    const auto varied = spread > 0.0F;
    const Lanes fitted =
        (size * sums.products - tile.total(way) * sums.codes) / (varied ? spread : all(1.0F));
    const Lanes rest = (tile.total(way) - fitted * sums.codes) / size;
    fit.scale = varied ? fitted : fit.scale;
    fit.minimum = varied ? rest : fit.minimum;
}

// The same without a minimum. Leaves the scale unchanged if all codes are 0.
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

// Searches from several starting points: `start(stretch, way)` returns an initial scale and minimum,
// `improve(way, fit)` better ones for the sums of its codes.
template <class Start, class Improve>
Wide<Fit> search(const Tile& tile, float least, float most, Start start, Improve improve) {
    Wide<Fit> best{};
    for (const double stretch : kStretches) {
        Wide<Fit> fit{{start(stretch, 0), start(stretch, 1)}};
        for (int round = 0; round < kRounds; ++round) {
            const Wide<Sums> sums = tile.sums_of_codes(
                roundings_of({fit[0].scale, fit[1].scale}, {fit[0].minimum, fit[1].minimum}, least, most));
            for (int way = 0; way < kWays; ++way) {
                fit[way].sums = sums[way];
                improve(way, fit[way]);
            }
        }
        for (int way = 0; way < kWays; ++way) {
            fit[way].error = error_of(tile, way, fit[way].scale, fit[way].minimum, fit[way].sums);
            best[way] = stretch == kStretches[0] ? fit[way] : better(fit[way], best[way]);
        }
    }
    return best;
}

}  // namespace

Lanes error_of(const Tile& tile, int way, Lanes scale, Lanes minimum, const Sums& sums) {
    const Lanes of_scale = scale * (scale * sums.squares - 2.0F * sums.products);
    const Lanes of_minimum =
        minimum * (static_cast<float>(tile.size()) * minimum + 2.0F * (scale * sums.codes - tile.total(way)));
    return of_scale + of_minimum;
}

Wide<Fit> fit_affine(const Tile& tile, int most, bool minimum_below_zero) {
    const auto start = [&](double stretch, int way) {
        Lanes low = tile.low(way);
        Lanes high = tile.high(way);
        if (minimum_below_zero) {
            low = smaller(low, Lanes{});
            high = larger(high, Lanes{});
        }
        return Fit{(high - low) / static_cast<float>(most + stretch), low, {}, {}};
    };
    const auto improve = [&](int way, Fit& fit) {
        regress(tile, way, fit);
        if (!minimum_below_zero) return;
        fit.scale = fit.minimum >= 0.0F ? without_minimum(fit.sums, fit.scale) : fit.scale;
        fit.minimum = smaller(fit.minimum, Lanes{});
    };
    return search(tile, 0.0F, static_cast<float>(most), start, improve);
}

Wide<Fit> fit_symmetric(const Tile& tile, int half) {
    const auto start = [&](double stretch, int way) {
        const Lanes low = tile.low(way);
        const Lanes high = tile.high(way);
        const Lanes farthest = -low > high ? low : high;
        return Fit{farthest / static_cast<float>(-half - stretch / 2), {}, {}, {}};
    };
    const auto improve = [](int, Fit& fit) { fit.scale = without_minimum(fit.sums, fit.scale); };
    return search(tile, static_cast<float>(-half), static_cast<float>(half - 1), start, improve);
}

}  // namespace llmd
