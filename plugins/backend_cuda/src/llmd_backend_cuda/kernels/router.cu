// router: the weight of each expert for a row; 0 for experts that the row does not use
//
//   x              [rows, width]     f32
//   weight         [experts, width]  f32, f16 or bf16 (stored.cuh)
//   products, out  [rows, experts]   f32
//   given          [rows, top_k]     f32: numbers of experts; null: they are chosen
//   scores   softmax over all experts, or of each the sigmoid or the root of ln(1 + e^z)
//   chosen   the largest scores plus corrections, of equal ones the first; NaN is never chosen. If experts
//            are given, these, each as often as it is given
//   work     router_products: a warp multiplies ROWS rows by the weights of an expert, each lane every
//            32nd VECTOR columns in order. router: a warp has a row
//   exact    every sum has an order that depends on the row only
//   speed    bound by latency for few rows
//   from     DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 2.1.2
//
// Macros: FORMAT of stored.cuh; VECTOR, neighbouring columns that are read at once: 4, or 1 if rows are not
// aligned.

#include "activations.cuh"
#include "step.cuh"
#include "stored.cuh"

#ifndef VECTOR
#define VECTOR 4
#endif

constexpr int WARPS = 8;
constexpr int THREADS = WARPS * WARP;
constexpr int ROWS = 4;

struct Args {
    const i32* counts;  // of Step
    const float* x;
    const void* weight;
    float* products;
    const float* bias;        // [experts]; null: none
    const float* correction;  // [experts]; null: none
    const float* gains;       // [experts]; null: ones
    float* out;
    i32 width;
    i32 experts;
    i32 top_k;
    i32 score;  // a Score
    i32 is_normalized;
    i32 groups;
    i32 top_groups;
    i32 adds_two;  // the score of a group is the sum of its two largest preferences, else the largest one
    float factor;
    float scale;
    const float* given;
};

enum Score { SOFTMAX, OF_SIGMOID, SQRT_SOFTPLUS };

// Neighbouring elements that are read by one instruction.
struct alignas(VECTOR * sizeof(Stored)) Weights {
    Stored at[VECTOR];
};
struct alignas(VECTOR * sizeof(float)) Elements {
    float at[VECTOR];
};

// Grid x: 8 experts, grid y: ROWS rows.
KERNEL BOUNDS(THREADS, 2) router_products(const Args args) {
    allow_next_kernel();
    wait_for_previous_kernel();
    const int expert = block_x() * WARPS + warp_index(), first = block_y() * ROWS;
    const int rows = args.counts[0] - first;
    if (expert >= args.experts || rows <= 0) return;
    const Stored* weights = (const Stored*)args.weight + (i64)expert * args.width;
    float sums[ROWS] = {};
#pragma unroll 2
    for (int column = lane_index() * VECTOR; column < args.width; column += WARP * VECTOR) {
        const Weights w = *(const Weights*)(weights + column);
#pragma unroll
        for (int n = 0; n < ROWS; ++n) {
            if (n >= rows) break;
            const Elements x = *(const Elements*)(args.x + (i64)(first + n) * args.width + column);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) sums[n] = fmaf(value_of(w.at[i]), x.at[i], sums[n]);
        }
    }
#pragma unroll
    for (int n = 0; n < ROWS; ++n) {
        const float total = warp_sum(sums[n]);
        if (n < rows && lane_index() == 0) args.products[(i64)(first + n) * args.experts + expert] = total;
    }
}

// A value and its place in an order by (value descending, place ascending).
struct Ranked {
    float value;
    i32 place;
};
DEVICE bool is_before(const Ranked& a, const Ranked& b) {
    return a.value > b.value || (a.value == b.value && a.place < b.place);
}

// The last of the first `count` values of `size` in that order; fewer if others are not numbers.
DEVICE Ranked last_of_first(int count, const float* values, int size) {
    Ranked last = {infinity(), -1};
    for (int found = 0; found < count; ++found) {
        Ranked best = {-infinity(), size};
        for (int place = lane_index(); place < size; place += WARP) {
            const Ranked one = {values[place], place};
            if (is_before(last, one) && is_before(one, best)) best = one;
        }
        for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
            const Ranked other = {shuffle_xor(best.value, lanes), shuffle_xor(best.place, lanes)};
            if (is_before(other, best)) best = other;
        }
        if (best.place == size) break;
        last = best;
    }
    return last;
}
DEVICE bool is_among(const Ranked& last, float value, int place) {
    return place == last.place || is_before({value, place}, last);
}

DEVICE void score_row(const Args& args, const float* products, float* scores) {
    float largest = -infinity();
    for (int e = lane_index(); e < args.experts; e += WARP) {
        const float logit = products[e] * args.scale + (args.bias ? args.bias[e] : 0.0f);
        scores[e] = args.score == OF_SIGMOID      ? sigmoid(logit)
                    : args.score == SQRT_SOFTPLUS ? sqrtf(softplus(logit))
                                                  : logit;
        largest = fmaxf(largest, logit);
    }
    if (args.score != SOFTMAX) return;
    largest = warp_max(largest);
    float sum = 0.0f;
    for (int e = lane_index(); e < args.experts; e += WARP) {
        scores[e] = expf(scores[e] - largest);
        sum += scores[e];
    }
    sum = warp_sum(sum);
    for (int e = lane_index(); e < args.experts; e += WARP) scores[e] /= sum;
}

// Multiply the score of each expert by how often the row is given it.
DEVICE void keep_given(const Args& args, const float* given, float* scores) {
    for (int e = lane_index(); e < args.experts; e += WARP) {
        int times = 0;
        for (int i = 0; i < args.top_k; ++i) times += given[i] == (float)e;
        scores[e] = times ? scores[e] * times : 0.0f;
    }
}

// Make the preferences of all experts outside the best groups minus infinity.
DEVICE void keep_best_groups(const Args& args, float* preferences, float* scores) {
    const int size = args.experts / args.groups;
    for (int group = lane_index(); group < args.groups; group += WARP) {
        float first = -infinity(), second = first;
        for (int e = group * size; e < (group + 1) * size; ++e) {
            const float value = preferences[e];
            second = fmaxf(second, fminf(first, value));
            first = fmaxf(first, value);
        }
        scores[group] = args.adds_two && size > 1 ? first + second : first;
    }
    warp_barrier();
    const Ranked last = last_of_first(args.top_groups, scores, args.groups);
    for (int e = lane_index(); e < args.experts; e += WARP) {
        if (!is_among(last, scores[e / size], e / size)) preferences[e] = -infinity();
    }
    warp_barrier();
}

// Make the scores of experts that are not chosen 0. `preferences` has room for all experts, then for all
// groups.
DEVICE void keep_chosen(const Args& args, float* scores, float* preferences) {
    for (int e = lane_index(); e < args.experts; e += WARP)
        preferences[e] = scores[e] + (args.correction ? args.correction[e] : 0.0f);
    warp_barrier();
    if (args.groups > 1) keep_best_groups(args, preferences, preferences + args.experts);
    const Ranked last = last_of_first(args.top_k, preferences, args.experts);
    for (int e = lane_index(); e < args.experts; e += WARP) {
        if (!is_among(last, preferences[e], e)) scores[e] = 0.0f;
    }
}

// Grid x: a row. Dynamic shared memory: scores and preferences of all experts, scores of groups.
KERNEL BOUNDS(WARP, 8) router(const Args args) {
    DYNAMIC_SHARED(shared);
    allow_next_kernel();
    wait_for_previous_kernel();
    if (block_x() >= args.counts[0]) return;
    float* scores = (float*)shared;
    score_row(args, args.products + (i64)block_x() * args.experts, scores);
    if (args.given) {
        keep_given(args, args.given + (i64)block_x() * args.top_k, scores);
    } else {
        keep_chosen(args, scores, scores + args.experts);
    }
    float sum = 0.0f;
    for (int e = lane_index(); e < args.experts; e += WARP) sum += scores[e];
    sum = warp_sum(sum) + 1e-20f;
    const float factor = args.is_normalized ? args.factor / sum : args.factor;
    float* out = args.out + (i64)block_x() * args.experts;
    for (int e = lane_index(); e < args.experts; e += WARP)
        out[e] = scores[e] * (args.gains ? factor * args.gains[e] : factor);
}
