#include "quantization.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "byte_fit.hpp"
#include "float16.hpp"
#include "group_fit.hpp"

namespace llmd {

namespace {

// All groups of one size: the full groups of all rows, or the short group at the end of each row.
class Groups {
  public:
    Groups(const PlainRows& rows, int64_t group_size, bool whole)
        : rows_(rows),
          first_(whole ? 0 : rows.row_len / group_size),
          of_row_(whole ? rows.row_len / group_size : rows.row_len % group_size != 0),
          stride_(group_size),
          size_(whole ? group_size : rows.row_len % group_size) {}

    int64_t count() const { return rows_.rows * of_row_; }
    int64_t size() const { return size_; }

    // The index of a group among all groups of both sizes, and the index of its first weight.
    int64_t number(int64_t group) const {
        const int64_t in_row = (rows_.row_len + stride_ - 1) / stride_;
        return group / of_row_ * in_row + first_ + group % of_row_;
    }
    int64_t weight(int64_t group) const {
        return group / of_row_ * rows_.row_len + (first_ + group % of_row_) * stride_;
    }

    void load(int64_t first, Tile& tile) const {
        const std::byte* from[kTile] = {};
        const int64_t bytes = plain_bytes(rows_.format);
        for (int lane = 0; lane < lanes(first); ++lane)
            from[lane] = rows_.data + weight(first + lane) * bytes;
        tile.load(from, rows_.format);
    }

    template <class Code>
    void store(int64_t first, const Tile& tile, uint8_t* codes, Code code) const {
        uint8_t* to[kTile] = {};
        for (int lane = 0; lane < lanes(first); ++lane) to[lane] = codes + weight(first + lane);
        tile.store(to, code);
    }

    // Calls `each(number, lane)` for the groups of a tile.
    template <class Each>
    void for_lanes(int64_t first, Each each) const {
        for (int lane = 0; lane < lanes(first); ++lane) each(number(first + lane), lane);
    }

  private:
    int lanes(int64_t first) const { return static_cast<int>(std::min<int64_t>(kTile, count() - first)); }

    PlainRows rows_;
    int64_t first_, of_row_, stride_, size_;
};

// Calls `each(groups, first, tile)` for every eight groups. Returns false as soon as a weight is out of
// range or `each` returns false.
template <class Each>
bool for_tiles(const PlainRows& rows, int64_t group_size, Each each) {
    for (const bool whole : {true, false}) {
        const Groups groups(rows, group_size, whole);
        if (groups.count() == 0) continue;
        Tile tile(groups.size());
        for (int64_t first = 0; first < groups.count(); first += kTile) {
            groups.load(first, tile);
            if (!tile.within_limits() || !each(groups, first, tile)) return false;
        }
    }
    return true;
}

float lane_of(const Wide<Lanes>& numbers, int lane) { return numbers[lane / kLanes][lane % kLanes]; }

Wide<Lanes> numbers_of(const uint16_t (&bits)[kTile]) {
    Wide<Lanes> numbers{};
    for (int lane = 0; lane < kTile; ++lane) numbers[lane / kLanes][lane % kLanes] = from_float16(bits[lane]);
    return numbers;
}

// Returns false if a number overflows float16.
bool rounded_to(const Wide<Lanes>& numbers, uint16_t (&bits)[kTile]) {
    bool finite = true;
    for (int lane = 0; lane < kTile; ++lane) {
        bits[lane] = to_float16(lane_of(numbers, lane));
        finite &= is_finite_float16(bits[lane]);
    }
    return finite;
}

// Rounds weights to integers and adds `zero`.
auto codes_of(const Wide<Rounding>& rounding, float zero) {
    return [=](int way, int64_t, Lanes weights) { return byte_of(rounding[way](weights) + zero); };
}

constexpr float kMost = 127.0F;
constexpr float kOutlierFactor = 8.0F;
constexpr float kFarthest = kMost * (1 + kOutlierFactor);
constexpr int64_t kMostOutliers = 8;

// A scale such that `largest / scale` rounds to at most 127.
uint16_t scale_of(float largest) {
    const uint16_t scale = to_float16(largest / kMost);
    const bool too_small = largest >= from_float16(scale) * (kMost + 0.5F) && largest > 0;
    return too_small ? next_float16(scale) : scale;
}

uint16_t scale_of(float largest, float within) {
    return float16_from(std::max(largest / kFarthest, within / kMost));
}

// The largest magnitudes of four groups after the `count` largest of each.
Lanes magnitude_after(const Tile& tile, int way, int64_t count) {
    if (tile.size() <= count) return Lanes{};
    Lanes largest[kMostOutliers + 1] = {};
    for (int64_t i = 0; i < tile.size(); ++i) {
        Lanes next = magnitude(tile.place(i)[way]);
        for (int64_t k = 0; k <= count; ++k) {
            const Lanes greater = larger(largest[k], next);
            next = smaller(largest[k], next);
            largest[k] = greater;
        }
    }
    return largest[count];
}

// Moves what exceeds -127 .. 127 in the groups of a tile into outliers, as multiples of eight.
class OutlierTaker {
  public:
    OutlierTaker(const Groups& groups, int64_t first, const OutlierPlaces& to) : to_(to) {
        groups.for_lanes(first, [&](int64_t number, int lane) {
            next_[lane] = number * to.count;
            end_[lane] = next_[lane] + to.count;
            std::fill_n(to.columns + next_[lane], to.count, uint8_t{0});
            std::fill_n(to.residuals + next_[lane], to.count, int8_t{0});
        });
    }

    Lanes operator()(int way, int64_t column, Lanes integers) {
        const auto beyond = magnitude(integers) > kMost;
        if ((beyond[0] | beyond[1] | beyond[2] | beyond[3]) == 0) return integers;
        for (int lane = 0; lane < kLanes; ++lane) {
            int64_t& next = next_[way * kLanes + lane];
            if (beyond[lane] == 0 || next == end_[way * kLanes + lane]) continue;
            const auto integer = static_cast<int>(integers[lane]);
            const int eights = (std::abs(integer) - 127 + 7) / 8 * (integer < 0 ? -1 : 1);
            integers[lane] -= kOutlierFactor * static_cast<float>(eights);
            to_.columns[next] = static_cast<uint8_t>(column);
            to_.residuals[next++] = static_cast<int8_t>(eights);
        }
        return integers;
    }

  private:
    OutlierPlaces to_;
    int64_t next_[kTile] = {}, end_[kTile] = {};
};

// The float16 scales of a tile for eight bits; returns false if one overflows.
bool scales_of(const Tile& tile, int64_t outliers, uint16_t (&tile_scales)[kTile]) {
    bool finite = true;
    for (int way = 0; way < kWays; ++way) {
        const Lanes largest = magnitude(larger(tile.high(way), -tile.low(way)));
        const Lanes within = outliers == 0 ? largest : magnitude_after(tile, way, outliers);
        for (int lane = 0; lane < kLanes; ++lane) {
            uint16_t& scale = tile_scales[way * kLanes + lane];
            scale = outliers == 0 ? scale_of(largest[lane]) : scale_of(largest[lane], within[lane]);
            finite &= is_finite_float16(scale);
        }
    }
    return finite;
}

}  // namespace

bool quantize_eight_bits(const PlainRows& weights, int64_t group_size, uint8_t* codes, uint16_t* scales,
                         const OutlierPlaces& outliers) {
    return for_tiles(weights, group_size, [&](const Groups& groups, int64_t first, const Tile& tile) {
        uint16_t tile_scales[kTile];
        if (!scales_of(tile, outliers.count, tile_scales)) return false;
        groups.for_lanes(first, [&](int64_t number, int lane) { scales[number] = tile_scales[lane]; });
        Wide<Lanes> divisors = numbers_of(tile_scales);
        for (Lanes& divisor : divisors.of) divisor = divisor == 0.0F ? all(1.0F) : divisor;
        const auto integer = [&](int way, Lanes of) { return nearest(of / divisors[way]); };
        if (outliers.count == 0) {
            groups.store(first, tile, codes,
                         [&](int way, int64_t, Lanes of) { return byte_of(integer(way, of) + 128.0F); });
        } else {
            OutlierTaker take(groups, first, outliers);
            groups.store(first, tile, codes, [&](int way, int64_t i, Lanes of) {
                return byte_of(take(way, i, integer(way, of)) + 128.0F);
            });
        }
        return true;
    });
}

bool quantize_symmetric(const PlainRows& weights, int64_t group_size, int half, uint8_t* codes,
                        uint16_t* scales) {
    const auto zero = static_cast<float>(half);
    return for_tiles(weights, group_size, [&](const Groups& groups, int64_t first, const Tile& tile) {
        const Wide<Fit> fit = fit_symmetric(tile, half);
        uint16_t rounded[kTile];
        if (!rounded_to({fit[0].scale, fit[1].scale}, rounded)) return false;
        groups.for_lanes(first, [&](int64_t number, int lane) { scales[number] = rounded[lane]; });
        const Wide<Lanes> scale = numbers_of(rounded);
        groups.store(first, tile, codes, codes_of(roundings_of(scale, {}, -zero, zero - 1), zero));
        return true;
    });
}

bool quantize_with_minimums(const PlainRows& weights, int64_t group_size, int most, uint8_t* codes,
                            uint16_t* scales, uint16_t* minimums) {
    const auto last = static_cast<float>(most);
    return for_tiles(weights, group_size, [&](const Groups& groups, int64_t first, const Tile& tile) {
        const Wide<Fit> fit = fit_affine(tile, most, false);
        uint16_t scale_bits[kTile], minimum_bits[kTile];
        if (!rounded_to({fit[0].scale, fit[1].scale}, scale_bits)) return false;
        if (!rounded_to({fit[0].minimum, fit[1].minimum}, minimum_bits)) return false;
        groups.for_lanes(first, [&](int64_t number, int lane) {
            scales[number] = scale_bits[lane];
            minimums[number] = minimum_bits[lane];
        });
        const Wide<Lanes> scale = numbers_of(scale_bits);
        const Wide<Lanes> minimum = numbers_of(minimum_bits);
        groups.store(first, tile, codes, codes_of(roundings_of(scale, minimum, 0.0F, last), 0.0F));
        return true;
    });
}

bool quantize_bytes(const PlainRows& weights, int64_t group_size, int most, uint8_t* codes,
                    const ByteScales& scales) {
    const Groups groups(weights, group_size, true);
    std::vector<Tile> block(static_cast<size_t>(scales.per_coarse / kTile), Tile(group_size));
    for (int64_t first = 0; first < groups.count(); first += scales.per_coarse) {
        for (size_t i = 0; i < block.size(); ++i) {
            groups.load(first + static_cast<int64_t>(i) * kTile, block[i]);
            if (!block[i].within_limits()) return false;
        }
        const std::optional<ByteFit> fit = fit_bytes(block, most, scales.most_fine_scale);
        if (!fit) return false;
        scales.coarse[first / scales.per_coarse] = fit->coarse;
        for (size_t i = 0; i < block.size(); ++i) {
            const int64_t begin = first + static_cast<int64_t>(i) * kTile;
            groups.store(begin, block[i], codes, codes_of(fit->rounding(i, most), 0.0F));
            groups.for_lanes(begin, [&](int64_t number, int lane) {
                scales.fine_scales[number] = static_cast<uint8_t>(lane_of(fit->scale[i], lane));
                scales.fine_minimums[number] = static_cast<uint8_t>(lane_of(fit->minimum[i], lane));
            });
        }
    }
    return true;
}

}  // namespace llmd
