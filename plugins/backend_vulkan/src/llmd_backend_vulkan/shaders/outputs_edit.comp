// A logit z that is edited becomes z / factor if z > 0, else z * factor, and then z + bias. The ids of a row's edits are
// distinct. Groups: (1, rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 128) in;
#include "work.glsl"
#include "outputs.glsl"
layout(binding = 1) readonly buffer Edits { uint edits[]; };  // (id, factor, bias)
layout(push_constant) uniform Push { uint selection, edited, stride; };

// The error of a float32 product (Dekker 1971), for factors that do not overflow when multiplied by 4097.
float product_error(float a, float b, float product) {
    precise float wide_a = 4097.0 * a, wide_b = 4097.0 * b;
    precise float high_a = wide_a - (wide_a - a), high_b = wide_b - (wide_b - b);
    precise float low_a = a - high_a, low_b = b - high_b;
    precise float error = high_a * high_b - product;
    error = error + high_a * low_b;
    error = error + low_a * high_b;
    error = error + low_a * low_b;
    return error;
}

// a / b rounded to nearest: Vulkan's division may be off by more.
float quotient(float a, float b) {
    precise float first = a / b;
    if (abs(a) > 1e30 || abs(b) > 1e30 || abs(first) > 1e30 || abs(a) < 1e-30 || abs(b) < 1e-30) {
        return first;
    }
    precise float product = first * b;
    precise float rest = a - product;
    rest = rest - product_error(first, b, product);
    precise float better = first + rest / b;
    return better;
}

void main() {
    uint row = gl_WorkGroupID.y;
    if (row >= work[selection]) {
        return;
    }
    uint of_row = selection + HEADER_WORDS + row * ROW_WORDS;
    uint first = work[of_row + FIRST_EDIT];
    for (uint i = gl_LocalInvocationID.x; i < work[of_row + NUM_EDITS]; i += THREADS) {
        uint at = 3u * (first + i);
        uint place = edited + row * stride + edits[at];
        if (work[place] == NO_LOGIT) {
            continue;
        }
        float z = number(place), factor = uintBitsToFloat(edits[at + 1u]);
        precise float scaled = z > 0.0 ? quotient(z, factor) : z * factor;
        precise float result = scaled + uintBitsToFloat(edits[at + 2u]);
        put(place, result);
    }
}
