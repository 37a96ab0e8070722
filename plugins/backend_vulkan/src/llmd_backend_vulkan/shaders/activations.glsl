// Functions that GLSL lacks, or whose precision Vulkan leaves open: tanh, erf and the activations of glu and activate.

// (1 - e) / (1 + e) with e = exp(-2|x|), which neither overflows nor loses digits of large x; a series for small x.
float tanh_of(float x) {
    float a = abs(x), q = x * x;
    if (a < 0.3) {
        return x * (1.0 + q * (-1.0 / 3.0 + q * (2.0 / 15.0 + q * (-17.0 / 315.0 + q * (62.0 / 2835.0)))));
    }
    float e = exp(-2.0 * a);
    return sign(x) * (1.0 - e) / (1.0 + e);
}

// Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26: within 1.5e-7.
float erf_of(float x) {
    float a = abs(x);
    float t = 1.0 / (1.0 + 0.3275911 * a);
    float sum = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return sign(x) * (1.0 - sum * exp(-a * a));
}

float sigmoid(float z) { return 1.0 / (1.0 + exp(-z)); }

// In the order of llmd.api.activations.ACTIVATIONS: silu, gelu, gelu_tanh, relu2, relu, tanh, quick_gelu, sigmoid,
// identity.
float activated(uint kind, float z, float threshold) {
    switch (kind) {
    case 0: return z / (1.0 + exp(-z));
    case 1: return z * 0.5 * (1.0 + erf_of(z * 0.70710678118654752));
    case 2: return 0.5 * z * (1.0 + tanh_of(0.79788456080286536 * (z + 0.044715 * z * z * z)));
    case 3: return max(z, 0.0) * max(z, 0.0);
    case 4: return z < threshold ? 0.0 : max(z, 0.0);
    case 6: return z / (1.0 + exp(-1.702 * z));
    case 7: return sigmoid(z);
    case 8: return z;
    default: return tanh_of(z);
    }
}
