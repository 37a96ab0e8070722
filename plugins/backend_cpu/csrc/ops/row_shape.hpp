// row_shape: statistics of a row of logits: log-sum-exp, entropy, standard deviation, finite entries
//
//   z  [count]  f32, -inf for excluded entries; x_i = z_i * inverse_temperature, p = softmax(x)
//   log_sum_exp  log sum_i e^x_i; -inf if all are excluded     entropy  -sum_i p_i log p_i, in nats
//   deviation    sqrt(mean((z - mean(z))^2)) over the finite z_i, without temperature
//   order  partial sums of 4096 entries in f32, one per lane; those in float64, ascending
//   check  log_sum_exp and entropy within 1e-5, deviation within 1e-5 of itself
//          (tests/plugins/backend_cpu/test_device.py)

#pragma once

#include <cmath>

namespace llmd::LLMD_ISA {

constexpr int64_t kRowPiece = 4096;
constexpr float kLeastLogit = -3.4028234663852886e38F;
// Below -87.3 the exponential is 0, whatever it is multiplied by.
constexpr float kLeastExponent = -88.0F;

// The largest entry, and the mean of the finite ones.
struct RowCenter {
    float top;
    double mean;
    int64_t finite;
};

struct RowShape {
    float log_sum_exp;
    float entropy;
    float deviation;
    int32_t finite;
};

// The last entries of a piece, with -inf in the unused lanes.
LLMD_INLINE Vec load_last(const float* z, int64_t left) {
    float rest[Vec::kLanes];
    for (int j = 0; j < Vec::kLanes; ++j) rest[j] = j < left ? z[j] : -__builtin_inff();
    return load(rest);
}

// Calls f(entries) for each register of a piece, in ascending order.
template <class F>
LLMD_INLINE void each_register(const float* z, int64_t count, F&& f) {
    int64_t i = 0;
    for (; i + Vec::kLanes <= count; i += Vec::kLanes) f(load(z + i));
    if (i < count) f(load_last(z + i, count - i));
}

LLMD_INLINE RowCenter center_of(const float* z, int64_t count) {
    const Vec least = set1(kLeastLogit);
    const Vec none = set1(0.0F);
    Vec top = set1(-__builtin_inff());
    double total = 0.0;
    int64_t finite = 0;
    for (int64_t first = 0; first < count; first += kRowPiece) {
        const int64_t piece = count - first < kRowPiece ? count - first : kRowPiece;
        Vec sums = none;
        Vec counts = none;
        each_register(z + first, piece, [&](Vec entries) LLMD_LAMBDA {
            top = max(top, entries);
            sums = sums + if_less(entries, least, none, entries);
            counts = counts + if_less(entries, least, none, set1(1.0F));
        });
        total += static_cast<double>(sum(sums));
        finite += static_cast<int64_t>(sum(counts));
    }
    return {largest(top), finite > 0 ? total / static_cast<double>(finite) : 0.0, finite};
}

LLMD_INLINE RowShape row_shape(const float* z, int64_t count, float inverse_temperature) {
    const RowCenter center = center_of(z, count);
    if (center.finite == 0) return {-__builtin_inff(), 0.0F, 0.0F, 0};
    const Vec top = set1(center.top);
    const Vec mean = set1(static_cast<float>(center.mean));
    const Vec factor = set1(inverse_temperature);
    const Vec least = set1(kLeastLogit);
    const Vec none = set1(0.0F);
    double weight = 0.0;
    double weighted = 0.0;
    double squared = 0.0;
    for (int64_t first = 0; first < count; first += kRowPiece) {
        const int64_t piece = count - first < kRowPiece ? count - first : kRowPiece;
        Vec weights = none;
        Vec products = none;
        Vec squares = none;
        each_register(z + first, piece, [&](Vec entries) LLMD_LAMBDA {
            const Vec x = (entries - top) * factor;
            const Vec e = exp(x);
            const Vec distance = if_less(entries, least, none, entries - mean);
            weights = weights + e;
            products = fma(e, max(set1(kLeastExponent), x), products);
            squares = fma(distance, distance, squares);
        });
        weight += static_cast<double>(sum(weights));
        weighted += static_cast<double>(sum(products));
        squared += static_cast<double>(sum(squares));
    }
    const double log_weight = ::log(weight);
    const double entropy = log_weight - weighted / weight;
    const double finite = static_cast<double>(center.finite);
    return {static_cast<float>(static_cast<double>(center.top) * inverse_temperature + log_weight),
            static_cast<float>(entropy > 0.0 ? entropy : 0.0), static_cast<float>(::sqrt(squared / finite)),
            static_cast<int32_t>(center.finite)};
}

}  // namespace llmd::LLMD_ISA
