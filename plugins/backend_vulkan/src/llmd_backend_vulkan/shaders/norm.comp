// rms:   out = x / sqrt(mean(x^2) + eps) * (offset + weight)
// layer: out = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * (offset + weight) + bias
// over each of some equal pieces of a row, which have the same weights, or their own if `own_step` is the width and not
// 0. Groups: (pieces, rows). A thread sums every 64th element of a piece, and the
// sums of the threads are added as a tree: an order that depends on nothing but the width.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
const uint THREADS = 64; // of a work group
layout(constant_id = 0) const bool LAYER = false;
layout(constant_id = 1) const bool HAS_WEIGHT = true;
layout(constant_id = 2) const bool HAS_BIAS = false;
#include "totals.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Weights { uint weights[]; };
layout(binding = 2) readonly buffer Biases { uint biases[]; };
layout(push_constant) uniform Push {
    uint counts, x, x_stride, out_at, out_stride, width, weight_at, bias_at, own_step;
    float eps, offset;
};

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[counts]) {
        return;
    }
    uint thread = gl_LocalInvocationID.x, piece = gl_WorkGroupID.x * width;
    uint own = gl_WorkGroupID.x * own_step;
    uint from = x + row * x_stride + piece, to = out_at + row * out_stride + piece;
    precise float mean = 0.0;
    if (LAYER) {
        precise float sum = 0.0;
        for (uint i = thread; i < width; i += 64u) {
            sum += number(from + i);
        }
        mean = sum_of_threads(sum) / float(width);
    }
    precise float squares = 0.0;
    for (uint i = thread; i < width; i += 64u) {
        precise float deviation = number(from + i) - mean;
        squares = fma(deviation, deviation, squares);
    }
    precise float factor = inversesqrt(sum_of_threads(squares) / float(width) + eps);
    for (uint i = thread; i < width; i += 64u) {
        float gain = offset + (HAS_WEIGHT ? uintBitsToFloat(weights[weight_at + own + i]) : 1.0);
        precise float value = (number(from + i) - mean) * factor * gain;
        if (HAS_BIAS) {
            value += uintBitsToFloat(biases[bias_at + own + i]);
        }
        put(to + i, value);
    }
}
