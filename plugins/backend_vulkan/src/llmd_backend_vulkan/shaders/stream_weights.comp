// The weights of the streams of a row, from z = products / sqrt(mean(x^2) + eps) * scale + bias. Of `streams` n:
//
//   [0, n)     sigmoid(z) + least: of what a layer reads
//   [n, 2 n)   2 sigmoid(z): of what it writes          not if `rounds` is 0
//   the rest   [n][n]: softmax of each row plus `least`; then columns and rows are divided by their sums plus `least` in
//              turn, columns first and last, `rounds` times the columns          not if `rounds` is 0
//
// A thread has a number of the matrix, and adds up its row or column in ascending order. There is a scale for each of
// these parts. Groups: (rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
const uint THREADS = 64; // of a work group: n * n at most
#include "activations.glsl"
#include "totals.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Biases { uint biases[]; };
layout(binding = 2) readonly buffer Scales { uint scales[]; };
layout(push_constant) uniform Push {
    uint counts, x, x_stride, width, products, products_stride, out_at, out_stride, bias_at, scale_at, streams, rounds;
    float eps, least;
};

shared float matrix[THREADS];

float z_of(uint row, uint part, uint i, float inverse) {
    precise float z = number(products + row * products_stride + i) * inverse * uintBitsToFloat(scales[scale_at + part]);
    z = z + uintBitsToFloat(biases[bias_at + i]);
    return z;
}

// Divides each number by the sum of its line, from `first` on, plus `added`.
void divide_by_sum(bool is_in, uint first, uint apart, float added) {
    precise float share = 0.0;
    if (is_in) {
        precise float total = added;
        for (uint i = 0; i < streams; i++) {
            total = total + matrix[first + i * apart];
        }
        share = matrix[gl_LocalInvocationID.x] / total;
    }
    barrier();
    matrix[gl_LocalInvocationID.x] = share;
    barrier();
}

void balance(bool is_in, float z) {
    uint thread = gl_LocalInvocationID.x, column = thread % streams, row = thread - column;
    matrix[thread] = z;
    barrier();
    float largest = z;
    for (uint i = 0; i < streams && is_in; i++) {
        largest = max(largest, matrix[row + i]);
    }
    barrier();
    matrix[thread] = exp(z - largest);
    barrier();
    divide_by_sum(is_in, row, 1u, 0.0);
    precise float raised = matrix[thread] + least;
    matrix[thread] = raised;
    barrier();
    for (uint round_at = 0; round_at < rounds; round_at++) {
        if (round_at > 0u) {
            divide_by_sum(is_in, row, 1u, least);
        }
        divide_by_sum(is_in, column, streams, least);
    }
}

void main() {
    uint row = gl_WorkGroupID.x, thread = gl_LocalInvocationID.x, to = out_at + row * out_stride;
    if (row >= work[counts]) {
        return;
    }
    precise float squares = 0.0;
    for (uint i = thread; i < width; i += 64u) {
        float value = number(x + row * x_stride + i);
        squares = fma(value, value, squares);
    }
    precise float inverse = inversesqrt(sum_of_threads(squares) / float(width) + eps);
    if (thread < streams) {
        precise float read = sigmoid(z_of(row, 0u, thread, inverse)) + least;
        put(to + thread, read);
    }
    if (rounds == 0u) {
        return;
    }
    if (thread < streams) {
        put(to + streams + thread, 2.0 * sigmoid(z_of(row, 1u, streams + thread, inverse)));
    }
    bool is_in = thread < streams * streams;
    balance(is_in, is_in ? z_of(row, 2u, 2u * streams + thread, inverse) : 0.0);
    if (is_in) {
        put(to + 2u * streams + thread, matrix[thread]);
    }
}
