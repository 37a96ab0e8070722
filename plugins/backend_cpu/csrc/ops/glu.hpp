// glu: out = activation(gate) * up
//
//   silu       x / (1 + e^-x)
//   gelu       x / 2 * (1 + erf(x / sqrt 2))
//   gelu_tanh  x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
//   relu2      max(x, 0)^2
//
//   gate, up, out  [count]  f32     work  1024 elements at a time
//   check  absolute error < 1e-6 * max(1, |x|) * |up|   (tests/plugins/backend_cpu/test_device.py)
//   from   Shazeer 2020, "GLU Variants Improve Transformer"; Hendrycks & Gimpel 2016, "Gaussian Error Linear
//   Units";
//          So et al. 2021, "Primer"

#pragma once

namespace llmd::LLMD_ISA {

enum Activation : int { kSilu, kGelu, kGeluTanh, kRelu2 };

template <int kActivation>
LLMD_INLINE Vec activate(Vec x) {
    const Vec one = set1(1.0F);
    const Vec half = set1(0.5F) * x;
    if constexpr (kActivation == kSilu) return x / (one + exp(set1(0.0F) - x));
    if constexpr (kActivation == kGelu) return half * (one + erf(x * set1(0.707106781F)));
    if constexpr (kActivation == kGeluTanh) {
        const Vec cubic = fma(x * x * x, set1(0.044715F), x);
        return half * (one + tanh(set1(0.797884561F) * cubic));
    }
    if constexpr (kActivation == kRelu2) {
        const Vec positive = max(set1(0.0F), x);  // in this order NaN stays NaN
        return positive * positive;
    }
}

template <int kActivation>
void glu_with(const GluArgs& args, Worker& worker) {
    constexpr int64_t kGrain = 1024;
    for (int64_t first; (first = worker.take(kGrain)) < args.count;) {
        const int64_t last = first + kGrain < args.count ? first + kGrain : args.count;
        int64_t i = first;
        for (; i + Vec::kLanes <= last; i += Vec::kLanes) {
            store(args.out + i, activate<kActivation>(load(args.gate + i)) * load(args.up + i));
        }
        if (i < last) {
            const int n = static_cast<int>(last - i);
            store_n(args.out + i, activate<kActivation>(load_n(args.gate + i, n)) * load_n(args.up + i, n),
                    n);
        }
    }
}

void glu(const GluArgs& args, Worker& worker) {
    switch (args.activation) {
        case kSilu:
            return glu_with<kSilu>(args, worker);
        case kGelu:
            return glu_with<kGelu>(args, worker);
        case kGeluTanh:
            return glu_with<kGeluTanh>(args, worker);
        case kRelu2:
            return glu_with<kRelu2>(args, worker);
    }
}

}  // namespace llmd::LLMD_ISA
