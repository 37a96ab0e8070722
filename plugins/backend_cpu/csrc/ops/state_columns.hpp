// S = decay S + k change, out = q S, row after row, for a rule that computes the change; some rules also
// remove what they find in one direction, and put it in another: S = decay S + k change + put removed
//
//   S      [key_dim, value_dim] of a head, f32, in the slot of its sequence (state_args.hpp)
//   work   32 columns of a head's state at a time, which stay in the first cache while all rows of the
//   sequence
//          change them
//   order  a row is computed in the same order whatever rows share its step: sums over key_dim have four
//          partial sums

#pragma once

#include "ops/state_rows.hpp"

namespace llmd::LLMD_ISA {

constexpr int kTogether = 2;  // vectors of columns that are changed together: they share what they multiply
constexpr int kPartialSums = 4;
constexpr int64_t kTileCols = kTogether * kStateCols;

// Adjacent columns of a head's state, at most kTileCols, in blocks [key_dim][16].
struct StateTile {
    float* at;
    int64_t cols;
    int64_t key_dim;

    float* column(int64_t c) const { return at + c / kStateCols * kStateCols * key_dim + c % kStateCols; }
    int64_t whole() const { return cols / kStateCols * kStateCols; }
};

// What a row does to a head.
struct StateStep {
    const float* q;
    const float* k;
    const float* decays;  // of each element, or of the head
    float share;
    float skip;  // of a state space
    const float* v;
    float* out;
    const float* removal;  // of RWKV-7
    const float* put;
};

// Sums over the elements of a key, for kVecs vectors of columns.
template <int kVecs>
struct KeySums {
    Vec parts[kVecs * kPartialSums];

    LLMD_INLINE_MEMBER KeySums() {
        unroll<kVecs * kPartialSums>([&](auto i) LLMD_LAMBDA { parts[i] = set1(0.0F); });
    }
    LLMD_INLINE_MEMBER void add(int part, Vec factor, Vec state) {
        parts[part] = fma(factor, state, parts[part]);
    }
    LLMD_INLINE_MEMBER Vec total(int v) const {
        const Vec* of = parts + v * kPartialSums;
        return (of[0] + of[1]) + (of[2] + of[3]);
    }
};

// kVecs vectors of columns of a tile; of the last one, `n` columns exist, all if kWhole.
template <bool kWhole, int kVecs>
struct StateColumns {
    float* at[kVecs];
    int64_t stride;
    int64_t key_dim;
    int64_t first;
    int n;

    LLMD_INLINE_MEMBER StateColumns(const StateTile& tile, int64_t first_column, int columns)
        : stride(kWhole ? kStateCols : tile.cols - tile.whole()),
          key_dim(tile.key_dim),
          first(first_column),
          n(columns) {
        unroll<kVecs>([&](auto v) LLMD_LAMBDA { at[v] = tile.column(first + v * Vec::kLanes); });
    }
    LLMD_INLINE_MEMBER Vec some(const float* p) const {
        if constexpr (kWhole) return load(p);
        return load_n(p, n);
    }
    LLMD_INLINE_MEMBER void set_some(float* p, Vec a) const {
        if constexpr (kWhole) return store(p, a);
        store_n(p, a, n);
    }
    LLMD_INLINE_MEMBER Vec state(int v, int64_t i) const { return some(at[v] + i * stride); }
    LLMD_INLINE_MEMBER Vec value(int v, const StateStep& step) const {
        return some(step.v + first + v * Vec::kLanes);
    }
};

// Calls f(i, Index<partial sum>) for all elements of a key.
template <class F>
LLMD_INLINE void each_element(int64_t key_dim, F&& f) {
    int64_t i = 0;
    for (; i + kPartialSums <= key_dim; i += kPartialSums)
        unroll<kPartialSums>([&](auto part) LLMD_LAMBDA { f(i + part, part); });
    for (; i < key_dim; ++i) f(i, Index<0>{});
}

// Rule::changes gives what is written to the columns of each vector, and then what is removed from them;
// Rule::result gives what is read from them.
template <class Rule, bool kWhole, int kVecs>
LLMD_INLINE void update_columns(const StateTile& tile, const StateStep& step, int64_t first, int n) {
    const StateColumns<kWhole, kVecs> of(tile, first, n);
    Vec change[(Rule::kRemoves ? 2 : 1) * kVecs];
    Rule::changes(of, step, change);
    KeySums<kVecs> sums;
    each_element(tile.key_dim, [&](int64_t i, auto part) LLMD_LAMBDA {
        const Vec kept = set1(step.decays[Rule::kPerElement ? i : 0]);
        const Vec key = set1(step.k[i]);
        const Vec query = set1(step.q[i]);
        unroll<kVecs>([&](auto v) LLMD_LAMBDA {
            Vec next = fma(key, change[v], of.state(v, i) * kept);
            if constexpr (Rule::kRemoves) next = fma(set1(step.put[i]), change[kVecs + v], next);
            of.set_some(of.at[v] + i * of.stride, next);
            sums.add(v * kPartialSums + part, query, next);
        });
    });
    unroll<kVecs>([&](auto v) LLMD_LAMBDA {
        const Vec found = Rule::result(sums.total(v), step, of.value(v, step));
        of.set_some(step.out + first + v * Vec::kLanes, found);
    });
}

template <class Rule>
LLMD_INLINE void update_tile(const StateTile& tile, const StateStep& step) {
    int64_t first = 0;
    for (; first + kTogether * Vec::kLanes <= tile.whole(); first += kTogether * Vec::kLanes)
        update_columns<Rule, true, kTogether>(tile, step, first, Vec::kLanes);
    for (; first + Vec::kLanes <= tile.whole(); first += Vec::kLanes)
        update_columns<Rule, true, 1>(tile, step, first, Vec::kLanes);
    for (; first < tile.cols; first += Vec::kLanes) {
        const int64_t left = tile.cols - first;
        const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        update_columns<Rule, false, 1>(tile, step, first, n);
    }
}

// What a row does to a head if the row has its convolved queries, keys and values in `mixed`.
template <bool kPerElement>
LLMD_INLINE StateStep mixed_step(const StateArgs& args, int64_t r, int64_t head, int64_t first) {
    const StateShape& shape = args.shape;
    const float* mixed = args.rows_of.mixed + r * shape.width();
    const int64_t keys = shape.key_width();
    const int64_t key = shape.key_head(head) * shape.key_dim;
    const int64_t value = head * shape.value_dim + first;
    return {mixed + key,
            mixed + keys + key,
            args.rows_of.decays + r * shape.decay_width() + head * (kPerElement ? shape.key_dim : 1),
            args.rows_of.shares[r * shape.heads + head],
            args.skips == nullptr ? 0.0F : args.skips[head],
            mixed + 2 * keys + value,
            args.out + r * shape.value_width() + value,
            nullptr,
            nullptr};
}

// Runs the rows of a sequence over a tile of columns of a head.
template <class Rule>
LLMD_INLINE void run_columns(const StateArgs& args, int64_t sequence, int64_t head, int64_t first) {
    const StateShape& shape = args.shape;
    const int64_t left = shape.value_dim - first;
    const int64_t cols = left < kTileCols ? left : kTileCols;
    const int64_t at = shape.kept() + head * shape.key_dim * shape.value_dim + first * shape.key_dim;
    begin_state(args, sequence, at, cols * shape.key_dim);
    float* state = args.pool + args.slots[2 * sequence + 1] * args.stride + at;
    const StateTile tile{state, cols, shape.key_dim};
    for (int64_t r = args.row_offsets[sequence]; r < args.row_offsets[sequence + 1]; ++r)
        update_tile<Rule>(tile, Rule::step(args, r, head, first));
}

// Runs the rows of all sequences over all states.
template <class Rule>
LLMD_INLINE void run_states(const StateArgs& args, Worker& worker) {
    const StateShape& shape = args.shape;
    const int64_t tiles = (shape.value_dim + kTileCols - 1) / kTileCols;
    const int64_t each = shape.heads * tiles + 1;  // the last item keeps rows
    each_near(worker, args.sequences * each, 1, [&](int64_t item) LLMD_LAMBDA {
        const int64_t sequence = item / each;
        const int64_t number = item % each;
        if (number == each - 1) return keep_rows(args, sequence);
        run_columns<Rule>(args, sequence, number / tiles, number % tiles * kTileCols);
    });
}

}  // namespace llmd::LLMD_ISA
