// router: the weight of each expert for a row, from the products of the router's matrix
//
//   products, out  [rows, experts]  f32     work  one row at a time
//   scores   softmax over all experts, or of each the sigmoid or the root of the softplus
//   chosen   the largest scores plus corrections, of equal ones the first; NaN is never chosen. If experts
//            are given, these, each as often as it is given
//   order    sums in ascending order of experts, therefore the same bits for any number of rows
//   check    NMSE < 1e-9   (the cases "router" of llmd.testing.expert_cases)
//   from     DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 2.1.2

#pragma once

#include "ops/gate.hpp"
#include "ops/near.hpp"
#include "ops/state_rows.hpp"

namespace llmd::LLMD_ISA {

// A value and its place in an order by (value descending, place ascending).
struct Ranked {
    float value;
    int64_t place;

    LLMD_INLINE_MEMBER bool before(const Ranked& other) const {
        return value > other.value || (value == other.value && place < other.place);
    }
};

// The first `count` of the places [0, size) in that order: calls value(place) and keeps(place). Returns the
// last of them; a place is among them if it is not after it.
template <class Value, class Keeps>
LLMD_INLINE Ranked last_of_first(int64_t count, int64_t size, const Value& value, const Keeps& keeps) {
    Ranked last{__builtin_inff(), -1};
    for (int64_t found = 0; found < count; ++found) {
        Ranked best{0.0F, -1};
        for (int64_t i = 0; i < size; ++i) {
            const Ranked candidate{value(i), i};
            if (!keeps(i) || !last.before(candidate)) continue;
            if (best.place < 0 || candidate.before(best)) best = candidate;
        }
        if (best.place < 0) break;
        last = best;
    }
    return last;
}

LLMD_INLINE void score_row(const RouterArgs& args, const float* products, float* scores) {
    const auto logits = [&](int64_t i, int n) LLMD_LAMBDA {
        const Vec scaled = load_n(products + i, n) * set1(args.scale);
        return args.bias == nullptr ? scaled : scaled + load_n(args.bias + i, n);
    };
    const auto each = [&](auto&& f) LLMD_LAMBDA {
        for (int64_t i = 0; i < args.experts; i += Vec::kLanes) {
            const int64_t left = args.experts - i;
            f(i, static_cast<int>(left < Vec::kLanes ? left : Vec::kLanes));
        }
    };
    if (args.score == Score::kSigmoid) {
        each([&](int64_t i, int n) LLMD_LAMBDA { store_n(scores + i, sigmoid(logits(i, n)), n); });
        return;
    }
    if (args.score == Score::kSqrtSoftplus) {
        each([&](int64_t i, int n) LLMD_LAMBDA { store_n(scores + i, sqrt(softplus(logits(i, n))), n); });
        return;
    }
    each([&](int64_t i, int n) LLMD_LAMBDA { store_n(scores + i, logits(i, n), n); });
    float top = scores[0];
    for (int64_t e = 1; e < args.experts; ++e) top = scores[e] > top ? scores[e] : top;
    each([&](int64_t i, int n)
             LLMD_LAMBDA { store_n(scores + i, exp(load_n(scores + i, n) - set1(top)), n); });
    float total = 0.0F;
    for (int64_t e = 0; e < args.experts; ++e) total += scores[e];
    each([&](int64_t i, int n) LLMD_LAMBDA { store_n(scores + i, load_n(scores + i, n) / set1(total), n); });
}

// The groups whose experts a row can use, as bits.
template <class Preference>
LLMD_INLINE uint64_t best_groups(const RouterArgs& args, const Preference& preference) {
    const int64_t size = args.experts / args.groups;
    float scores[64];
    for (int64_t g = 0; g < args.groups; ++g) {
        float first = -__builtin_inff();
        float second = first;
        for (int64_t e = g * size; e < (g + 1) * size; ++e) {
            const float value = preference(e);
            second = value > first ? first : value > second ? value : second;
            first = value > first ? value : first;
        }
        scores[g] = args.sum_of_two && size > 1 ? first + second : first;
    }
    const auto score = [&](int64_t g) LLMD_LAMBDA { return scores[g]; };
    const Ranked last = last_of_first(args.top_groups, args.groups, score, [](int64_t) { return true; });
    uint64_t groups = 0;
    for (int64_t g = 0; g < args.groups; ++g) {
        if (!last.before({scores[g], g})) groups |= uint64_t{1} << g;
    }
    return groups;
}

// Multiplies the score of each expert by how often the row is given it.
LLMD_INLINE float keep_given(const RouterArgs& args, const float* given, float* scores) {
    float total = 1e-20F;
    for (int64_t e = 0; e < args.experts; ++e) {
        float times = 0.0F;
        for (int64_t i = 0; i < args.top_k; ++i) times += given[i] == static_cast<float>(e) ? 1.0F : 0.0F;
        scores[e] = times > 0.0F ? scores[e] * times : 0.0F;
        total += scores[e];
    }
    return total;
}

// Keeps the scores of the experts that are chosen; the others become 0.
LLMD_INLINE float keep_chosen(const RouterArgs& args, float* out) {
    const auto preference = [&](int64_t e) LLMD_LAMBDA {
        return args.correction == nullptr ? out[e] : out[e] + args.correction[e];
    };
    const uint64_t groups = args.groups > 1 ? best_groups(args, preference) : 1;
    const int64_t size = args.experts / args.groups;
    const auto keeps = [&](int64_t e)
                           LLMD_LAMBDA { return args.groups == 1 || (groups >> (e / size) & 1) != 0; };
    const Ranked last = last_of_first(args.top_k, args.experts, preference, keeps);
    float total = 1e-20F;
    for (int64_t e = 0; e < args.experts; ++e) {
        const bool chosen = keeps(e) && (Ranked{preference(e), e}.before(last) || e == last.place);
        if (!chosen) out[e] = 0.0F;
        total += out[e];
    }
    return total;
}

LLMD_INLINE void route_row(const RouterArgs& args, const float* products, const float* given, float* out) {
    score_row(args, products, out);
    const float total = given == nullptr ? keep_chosen(args, out) : keep_given(args, given, out);
    const float factor = args.normalized ? args.factor / total : args.factor;
    for (int64_t e = 0; e < args.experts; ++e) {
        out[e] *= args.gains == nullptr ? factor : factor * args.gains[e];
    }
}

void router(const RouterArgs& args, Worker& worker) {
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const float* given = args.given == nullptr ? nullptr : args.given + r * args.top_k;
        route_row(args, args.products + r * args.experts, given, args.out + r * args.experts);
    });
}

}  // namespace llmd::LLMD_ISA
