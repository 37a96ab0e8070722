// The activations that `glu` and `activate` share, and the selection of one at run time.
//
//   silu       x / (1 + e^-x)
//   gelu       x / 2 * (1 + erf(x / sqrt 2))
//   gelu_tanh  x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
//   relu2      max(x, 0)^2
//   relu       x, or 0 if x is below a threshold that is at least 0 (`glu`: FATReLU)
//   tanh       tanh(x)
//   quick_gelu x / (1 + e^(-1.702 x))
//   sigmoid    1 / (1 + e^-x)
//   identity   x (`glu`: a product)
//
//   check  absolute error < 1e-6 * max(1, |x|)   (tests/plugins/backend_cpu/test_device.py)
//   from   Hendrycks & Gimpel 2016, "Gaussian Error Linear Units"; So et al. 2021, "Primer"

#pragma once

namespace llmd::LLMD_ISA {

template <Activation kActivation>
LLMD_INLINE Vec activated(Vec x, [[maybe_unused]] Vec least = set1(0.0F)) {
    const Vec one = set1(1.0F);
    const Vec half = set1(0.5F) * x;
    if constexpr (kActivation == kSilu) return x / (one + exp(set1(0.0F) - x));
    if constexpr (kActivation == kGelu) return half * (one + erf(x * set1(0.707106781F)));
    if constexpr (kActivation == kGeluTanh) {
        const Vec cubic = fma(x * x * x, set1(0.044715F), x);
        return half * (one + tanh(set1(0.797884561F) * cubic));
    }
    if constexpr (kActivation == kRelu2) {
        const Vec positive = max(set1(0.0F), x);  // this operand order keeps NaN
        return positive * positive;
    }
    if constexpr (kActivation == kRelu) return if_less(x, least, set1(0.0F), x);
    if constexpr (kActivation == kTanh) return tanh(x);
    if constexpr (kActivation == kQuickGelu) return x / (one + exp(set1(-1.702F) * x));
    if constexpr (kActivation == kSigmoid) return one / (one + exp(set1(0.0F) - x));
    if constexpr (kActivation == kIdentity) return x;
}

// Calls `run` with the activation as its template argument.
template <class Run>
void with_activation(Activation activation, const Run& run) {
    switch (activation) {
        case kSilu:
            return run.template operator()<kSilu>();
        case kGelu:
            return run.template operator()<kGelu>();
        case kGeluTanh:
            return run.template operator()<kGeluTanh>();
        case kRelu2:
            return run.template operator()<kRelu2>();
        case kRelu:
            return run.template operator()<kRelu>();
        case kTanh:
            return run.template operator()<kTanh>();
        case kQuickGelu:
            return run.template operator()<kQuickGelu>();
        case kSigmoid:
            return run.template operator()<kSigmoid>();
        case kIdentity:
            return run.template operator()<kIdentity>();
    }
}

}  // namespace llmd::LLMD_ISA
