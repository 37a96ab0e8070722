#include "group_tile.hpp"

#include <algorithm>

#include "float16.hpp"

namespace llmd {

namespace {

constexpr float kLargestWeight = 8388608.0F;  // 2^23

void widen(const std::byte* from, PlainFormat format, int64_t count, float* to) {
    if (format == PlainFormat::kF32) {
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + 2 * i, 2);
        to[i] = format == PlainFormat::kF16 ? from_float16(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
    }
}

}  // namespace

void Tile::load(const std::byte* const (&groups)[kTile], PlainFormat format) {
    for (int group = 0; group < kTile; ++group) {
        float* row = rows_.data() + group * size_;
        if (groups[group] != nullptr) {
            widen(groups[group], format, size_, row);
        } else {
            std::fill_n(row, size_, 0.0F);
        }
    }
    Wide<Bits> beyond{};
    for (int64_t i = 0; i < size_; ++i) {
        for (int way = 0; way < kWays; ++way) {
            const float* from = rows_.data() + way * kLanes * size_ + i;
            const Lanes weights{from[0], from[size_], from[2 * size_], from[3 * size_]};
            places_[static_cast<size_t>(i)][way] = weights;
            total_[way] = i == 0 ? weights : total_[way] + weights;
            low_[way] = i == 0 ? weights : smaller(low_[way], weights);
            high_[way] = i == 0 ? weights : larger(high_[way], weights);
            beyond[way] |= ~(Bits)(magnitude(weights) <= kLargestWeight);
        }
    }
    const Bits any = beyond[0] | beyond[1];
    within_limits_ = (any[0] | any[1] | any[2] | any[3]) == 0;
}

}  // namespace llmd
