// exp, tanh, erf and static loops over the vector type of a unit.
//
//   exp   x = n ln 2 + f, |f| <= ln 2 / 2; Taylor series of e^f to f^7       relative error < 2e-7
//   tanh  Taylor series to x^11 below 0.3, else 1 - 2 / (e^2|x| + 1)         relative error < 4e-7
//   erf   Abramowitz & Stegun 1964, formula 7.1.26                           absolute error < 4e-7

#pragma once

namespace llmd::LLMD_ISA {

// Calls f(Index<0>), f(Index<1>), … f(Index<N - 1>): the compiler keeps arrays indexed by constants in
// registers.
template <int kValue>
struct Index {
    constexpr operator int() const { return kValue; }
};
template <int kCount, int kFirst = 0, class F>
LLMD_INLINE void unroll(F&& f) {
    if constexpr (kFirst < kCount) {
        f(Index<kFirst>{});
        unroll<kCount, kFirst + 1>(f);
    }
}

// Returns 0 below -87.3 and e^88.3 above 88.3; NaN stays NaN.
LLMD_INLINE Vec exp(Vec x) {
    const Vec bounded = min(set1(88.3F), max(set1(-87.3F), x));
    const Vec n = round(bounded * set1(1.44269504F));
    Vec f = fma(n, set1(-0.693145752F), bounded);  // ln 2 in two parts; the first ends in 11 zero bits
    f = fma(n, set1(-1.42860677e-6F), f);
    Vec series = set1(1.0F / 5040);
    series = fma(series, f, set1(1.0F / 720));
    series = fma(series, f, set1(1.0F / 120));
    series = fma(series, f, set1(1.0F / 24));
    series = fma(series, f, set1(1.0F / 6));
    series = fma(series, f, set1(0.5F));
    series = fma(series, f, set1(1.0F));
    series = fma(series, f, set1(1.0F));
    return if_less(x, set1(-87.3F), set1(0.0F), series * power_of_two(n));
}

LLMD_INLINE Vec tanh(Vec x) {
    const Vec magnitude = abs(x);
    const Vec square = x * x;
    Vec series = set1(-1382.0F / 155925);
    series = fma(series, square, set1(62.0F / 2835));
    series = fma(series, square, set1(-17.0F / 315));
    series = fma(series, square, set1(2.0F / 15));
    series = fma(series, square, set1(-1.0F / 3));
    series = fma(series * square, x, x);
    const Vec far = set1(1.0F) - set1(2.0F) / (exp(magnitude + magnitude) + set1(1.0F));
    const Vec signed_far = if_less(x, set1(0.0F), set1(0.0F) - far, far);
    return if_less(magnitude, set1(0.3F), series, signed_far);
}

LLMD_INLINE Vec erf(Vec x) {
    const Vec magnitude = abs(x);
    const Vec t = set1(1.0F) / fma(set1(0.3275911F), magnitude, set1(1.0F));
    Vec series = set1(1.061405429F);
    series = fma(series, t, set1(-1.453152027F));
    series = fma(series, t, set1(1.421413741F));
    series = fma(series, t, set1(-0.284496736F));
    series = fma(series, t, set1(0.254829592F));
    const Vec value = set1(1.0F) - series * t * exp(set1(0.0F) - x * x);
    return if_less(x, set1(0.0F), set1(0.0F) - value, value);
}

LLMD_INLINE Vec softcap(Vec x, float cap) { return set1(cap) * tanh(x / set1(cap)); }

}  // namespace llmd::LLMD_ISA
