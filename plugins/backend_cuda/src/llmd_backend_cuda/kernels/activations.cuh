// Elementwise activations, by their index in llmd.api.activations.ACTIVATIONS.
#pragma once

#include "gpu.cuh"

enum Activation { SILU, GELU, GELU_TANH, RELU2, RELU, TANH, QUICK_GELU, SIGMOID, IDENTITY };

DEVICE float sigmoid(float z) { return 1.0f / (1.0f + expf(-z)); }
DEVICE float softplus(float z) { return fmaxf(z, 0.0f) + log1pf(expf(-fabsf(z))); }

// `threshold` is that of llmd.api.Glu: lower values of RELU become 0.
DEVICE float activate(int activation, float z, float threshold) {
    switch (activation) {
        case SILU:
            return z / (1.0f + expf(-z));
        case GELU:
            return 0.5f * z * erfcf(-0.70710678118654752f * z);
        case GELU_TANH:
            return 0.5f * z * (1.0f + tanhf(0.7978845608028654f * (z + 0.044715f * z * z * z)));
        case RELU2:
            return z > 0.0f ? z * z : 0.0f;
        case RELU:
            return z > 0.0f && z >= threshold ? z : 0.0f;
        case QUICK_GELU:
            return z / (1.0f + expf(-1.702f * z));
        case SIGMOID:
            return sigmoid(z);
        case IDENTITY:
            return z;
        default:
            return tanhf(z);
    }
}

// activation(min(gate, limit)) * (up within +-limit), as in llmd.api.Glu; what is not a number stays so.
DEVICE float gated(int activation, float threshold, float limit, float gate, float up) {
    const float within = up > limit ? limit : up < -limit ? -limit : up;
    return activate(activation, gate > limit ? limit : gate, threshold) * within;
}
