// generalized_delta: S = diag(decay) S - put (removal S) + k v, out = r S, row after row
//
//   S        [head_dim, head_dim] of a head, f32, in the slot of its sequence (state_args.hpp)
//   removal  k * removal with length 1     put  rate * removal     k  k * (1 + (rate - 1) * mixing)
//   rate     sigmoid(a)     decay  exp(-exp(-1/2) * sigmoid(decay))     bonus  sum(r * k * bonuses) * v
//   work     wkv_rows: one row at a time. wkv_states: as in state_columns.hpp
//   check    NMSE < 1e-9   (the conformance cases "generalized_delta")
//   from     Peng et al. 2025, "RWKV-7 'Goose' with Expressive Dynamic State Evolution"

#pragma once

#include "ops/norm.hpp"
#include "ops/state_columns.hpp"

namespace llmd::LLMD_ISA {

constexpr float kWkvDecay = -0.6065306597126334F;
constexpr float kWkvEps = 1e-12F;

// A head of a row. Its numbers begin at `at` in [rows, width], and at `of_head` in [width].
struct WkvHead {
    int64_t at;
    int64_t of_head;
    float* removal;
    float* key;
    float* put;
};

LLMD_INLINE WkvHead wkv_head(const StateArgs& args, int64_t r, int64_t head) {
    const int64_t width = args.shape.key_width();
    const int64_t of_head = head * args.shape.key_dim;
    float* removal = args.rows_of.mixed + r * args.shape.width() + of_head;
    return {r * width + of_head, of_head, removal, removal + width, removal + 2 * width};
}

// Writes what the head removes, with length 1.
LLMD_INLINE void find_removal(const StateArgs& args, const WkvHead& to) {
    const int64_t dim = args.shape.key_dim;
    for (int64_t i = 0; i < dim; i += Vec::kLanes) {
        const int n = dim - i < Vec::kLanes ? static_cast<int>(dim - i) : Vec::kLanes;
        store_n(to.removal + i,
                load_n(args.inputs[1] + to.at + i, n) * load_n(args.removal + to.of_head + i, n), n);
    }
    const float length = __builtin_sqrtf(sum_of_squares(to.removal, dim, 0.0F));
    const Vec factor = set1(1.0F / (length < kWkvEps ? kWkvEps : length));
    for (int64_t i = 0; i < dim; i += Vec::kLanes) {
        const int n = dim - i < Vec::kLanes ? static_cast<int>(dim - i) : Vec::kLanes;
        store_n(to.removal + i, load_n(to.removal + i, n) * factor, n);
    }
}

// Writes keys, what is put in place of the removed, and decays; returns the factor of the bonus.
LLMD_INLINE float find_keys(const StateArgs& args, const WkvHead& to) {
    const int64_t dim = args.shape.key_dim;
    const Vec one = set1(1.0F);
    Vec total = set1(0.0F);
    for (int64_t i = 0; i < dim; i += Vec::kLanes) {
        const int n = dim - i < Vec::kLanes ? static_cast<int>(dim - i) : Vec::kLanes;
        const Vec rate = sigmoid(load_n(args.beta + to.at + i, n));
        const Vec mixing = load_n(args.mixing + to.of_head + i, n);
        const Vec key = load_n(args.inputs[1] + to.at + i, n) * fma(rate - one, mixing, one);
        store_n(to.key + i, key, n);
        store_n(to.put + i, rate * load_n(to.removal + i, n), n);
        const Vec decay = exp(set1(kWkvDecay) * sigmoid(load_n(args.decay + to.at + i, n)));
        store_n(args.rows_of.decays + to.at + i, decay, n);
        const Vec read = load_n(args.inputs[0] + to.at + i, n) * load_n(args.bonuses + to.of_head + i, n);
        total = fma(read, key, total);
    }
    return sum(total);
}

void wkv_rows(const StateArgs& args, Worker& worker) {
    const int64_t dim = args.shape.key_dim;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        for (int64_t head = 0; head < args.shape.heads; ++head) {
            const WkvHead to = wkv_head(args, r, head);
            find_removal(args, to);
            gate_slice(args.inputs[2] + to.at, set1(find_keys(args, to)), args.bonus + to.at, dim);
        }
    });
}

struct GeneralizedDeltaRule {
    static constexpr bool kPerElement = true;
    static constexpr bool kRemoves = true;

    LLMD_INLINE StateStep step(const StateArgs& args, int64_t r, int64_t head, int64_t first) {
        const WkvHead of = wkv_head(args, r, head);
        return {args.inputs[0] + of.at,
                of.key,
                args.rows_of.decays + of.at,
                0.0F,
                0.0F,
                args.inputs[2] + of.at + first,
                args.out + of.at + first,
                of.removal,
                of.put};
    }

    // The value, and the negative of what the state has in the direction that is removed.
    template <bool kWhole, int kVecs>
    LLMD_INLINE void changes(const StateColumns<kWhole, kVecs>& of, const StateStep& step, Vec* change) {
        KeySums<kVecs> sums;
        each_element(of.key_dim, [&](int64_t i, auto part) LLMD_LAMBDA {
            const Vec factor = set1(step.removal[i]);
            unroll<kVecs>([&](auto v)
                              LLMD_LAMBDA { sums.add(v * kPartialSums + part, factor, of.state(v, i)); });
        });
        unroll<kVecs>([&](auto v) LLMD_LAMBDA {
            change[v] = of.value(v, step);
            change[kVecs + v] = set1(0.0F) - sums.total(v);
        });
    }

    LLMD_INLINE Vec result(Vec read, const StateStep&, Vec) { return read; }
};

void wkv_states(const StateArgs& args, Worker& worker) { run_states<GeneralizedDeltaRule>(args, worker); }

}  // namespace llmd::LLMD_ISA
