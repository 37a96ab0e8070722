// The weight of each expert for a row, from the logits that linear.comp has left; 0 for experts that it does not use.
//
// Scores are softmax(logits), their sigmoids, or the roots of their softplus. Used are the experts with the largest
// scores plus corrections, of equal ones the first, in groups with the largest group scores; what is not a number is
// never chosen. An expert counts those that come before it: that takes no barriers, and few steps for the numbers of
// experts that there are. GIVEN: used are those whose numbers are in `given`, float32 [rows][given_stride]; one that is
// there twice counts twice. Groups: (rows).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
const uint THREADS = 64; // of a work group
layout(constant_id = 0) const uint SCORE = 0; // 0 softmax, 1 sigmoid, 2 root of softplus
layout(constant_id = 1) const bool NORMALIZED = true;
layout(constant_id = 2) const bool ADDS_TWO = true; // the score of a group is the sum of its two largest preferences
layout(constant_id = 3) const bool HAS_CORRECTION = false;
layout(constant_id = 4) const bool HAS_GAINS = false;
layout(constant_id = 5) const bool GIVEN = false;
#include "activations.glsl"
#include "softplus.glsl"
#include "totals.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Corrections { uint corrections[]; };
layout(binding = 2) readonly buffer Gains { uint gains[]; };
layout(push_constant) uniform Push {
    uint counts, logits, logits_stride, out_at, out_stride, experts, top_k, groups, top_groups;
    uint correction_at, gain_at, given, given_stride;
    float factor;
};

const uint MOST_EXPERTS = 1024;

shared float scores[MOST_EXPERTS];
shared uint keys[MOST_EXPERTS];       // of the preferences; 0: cannot be chosen
shared uint group_keys[MOST_EXPERTS]; // of the scores of groups

// Larger numbers have larger keys; what is not a number has 0.
uint key_of(float x) {
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0u;
    }
    bits = bits == 0x80000000u ? 0u : bits; // -0 is equal to 0
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

float preference(uint expert) {
    precise float found = scores[expert];
    if (HAS_CORRECTION) {
        found = found + uintBitsToFloat(corrections[correction_at + expert]);
    }
    return found;
}

void find_scores(uint from) {
    uint thread = gl_LocalInvocationID.x;
    float largest = -3.4028234663852886e38;
    for (uint expert = thread; expert < experts; expert += 64u) {
        largest = max(largest, number(from + expert));
    }
    largest = SCORE != 0u ? 0.0 : largest_of_threads(largest);
    precise float sum = 0.0;
    for (uint expert = thread; expert < experts; expert += 64u) {
        precise float z = number(from + expert);
        scores[expert] = SCORE == 1u ? sigmoid(z) : SCORE == 2u ? sqrt(softplus(z)) : exp(z - largest);
        sum += scores[expert];
    }
    if (SCORE != 0u) {
        return;
    }
    float all = sum_of_threads(sum);
    for (uint expert = thread; expert < experts; expert += 64u) {
        precise float share = scores[expert] / all;
        scores[expert] = share;
    }
}

// Sets the keys of experts outside the best groups to 0.
void keep_best_groups() {
    uint size = experts / groups;
    for (uint group = gl_LocalInvocationID.x; group < groups; group += 64u) {
        float first = -3.4028234663852886e38, second = first;
        for (uint expert = group * size; expert < (group + 1u) * size; expert++) {
            float value = preference(expert);
            second = max(second, min(first, value));
            first = max(first, value);
        }
        precise float score = ADDS_TWO && size > 1u ? first + second : first;
        group_keys[group] = key_of(score);
    }
    barrier();
    for (uint expert = gl_LocalInvocationID.x; expert < experts; expert += 64u) {
        uint group = expert / size, before = 0u, mine = group_keys[group];
        for (uint other = 0; other < groups; other++) {
            before += group_keys[other] > mine || (group_keys[other] == mine && other < group) ? 1u : 0u;
        }
        keys[expert] = before < top_groups ? keys[expert] : 0u;
    }
    barrier();
}

bool is_chosen(uint expert) {
    uint before = 0u, mine = keys[expert];
    for (uint other = 0; other < experts; other++) {
        before += keys[other] > mine || (keys[other] == mine && other < expert) ? 1u : 0u;
    }
    return mine != 0u && before < top_k;
}

// How often an expert is used.
float times_used(uint row, uint expert) {
    if (!GIVEN) {
        return is_chosen(expert) ? 1.0 : 0.0;
    }
    float times = 0.0;
    for (uint i = 0; i < top_k; i++) {
        times += number(given + row * given_stride + i) == float(expert) ? 1.0 : 0.0;
    }
    return times;
}

void main() {
    uint row = gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    find_scores(logits + row * logits_stride);
    for (uint expert = thread; expert < experts; expert += 64u) {
        keys[expert] = key_of(preference(expert));
    }
    barrier();
    if (groups > 1u) {
        keep_best_groups();
    }
    precise float sum = 0.0;
    for (uint expert = thread; expert < experts; expert += 64u) {
        float times = times_used(row, expert);
        scores[expert] = times > 0.0 ? scores[expert] * times : 0.0;
        sum += scores[expert];
    }
    precise float scale = factor;
    if (NORMALIZED) {
        scale = scale / (sum_of_threads(sum) + 1e-20);
    }
    for (uint expert = thread; expert < experts; expert += 64u) {
        precise float weight = scores[expert] * scale;
        if (HAS_GAINS) {
            weight = weight * uintBitsToFloat(gains[gain_at + expert]);
        }
        put(out_at + row * out_stride + expert, weight);
    }
}
