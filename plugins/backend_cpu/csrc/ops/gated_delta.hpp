// gated_delta: S = decay S + k (share (v - decay k S)), out = q S, row after row
//
//   S      [key_dim, value_dim] of a head, f32, in the slot of its sequence (delta_args.hpp)
//   q, k   of the key head, convolved, with length 1 (q: key_dim^-1/2)     v  convolved
//   work   delta_rows: one row at a time. delta_states: 32 columns of a head's state at a time, which stay in
//          the first cache while all rows of the sequence change them
//   order  a row is computed in the same order whatever rows share its step: sums over key_dim have four
//          partial sums
//   check  NMSE < 1e-9   (the conformance cases "gated_delta")
//   from   Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule"

#pragma once

#include "ops/gate.hpp"
#include "ops/norm.hpp"

namespace llmd::LLMD_ISA {

constexpr float kDeltaEps = 1e-6F;

// ln(1 + u) for u in [0, 1]: the series of 2 artanh(u / (2 + u)) to its 13th power, relative error < 2e-7.
LLMD_INLINE Vec log_one_plus(Vec u) {
    const Vec z = u / (set1(2.0F) + u);
    const Vec square = z * z;
    Vec series = set1(2.0F / 13);
    series = fma(series, square, set1(2.0F / 11));
    series = fma(series, square, set1(2.0F / 9));
    series = fma(series, square, set1(2.0F / 7));
    series = fma(series, square, set1(2.0F / 5));
    series = fma(series, square, set1(2.0F / 3));
    series = fma(series, square, set1(2.0F));
    return series * z;
}

LLMD_INLINE Vec softplus(Vec x) { return max(set1(0.0F), x) + log_one_plus(exp(set1(0.0F) - abs(x))); }

// A row of a step and what its sequence has before it.
struct DeltaRow {
    int64_t row;
    int64_t number;     // in its sequence and step
    const float* kept;  // [taps - 1][width] before the step; null: zeros
};

LLMD_INLINE DeltaRow delta_row(const DeltaArgs& args, int64_t row) {
    int64_t s = 0;
    while (args.row_offsets[s + 1] <= row) ++s;
    const int64_t slot = args.slots[2 * s];
    return {row, row - args.row_offsets[s], slot < 0 ? nullptr : args.pool + slot * args.shape.state()};
}

// Convolves one input of a row, whose columns begin at `first` among those of all three.
LLMD_INLINE void convolve(const DeltaArgs& args, const DeltaRow& of, const float* x, int64_t width,
                          int64_t first) {
    const int64_t all = args.shape.width();
    float* out = args.rows_of.mixed + of.row * all + first;
    for (int64_t i = 0; i < width; i += Vec::kLanes) {
        const int n = width - i < Vec::kLanes ? static_cast<int>(width - i) : Vec::kLanes;
        Vec total = set1(0.0F);
        for (int64_t tap = 0; tap < args.shape.taps; ++tap) {
            const int64_t back = args.shape.taps - 1 - tap;
            const float* from = nullptr;
            if (back <= of.number)
                from = x + (of.row - back) * width + i;
            else if (of.kept != nullptr)
                from = of.kept + (of.number + tap) * all + first + i;
            if (from == nullptr) continue;
            total = fma(load_n(args.taps + tap * all + first + i, n), load_n(from, n), total);
        }
        store_n(out + i, activated<kSilu>(total), n);
    }
}

// Gives each head of a row the length `length`.
LLMD_INLINE void normalize_heads(float* x, int64_t heads, int64_t dim, float length) {
    for (int64_t head = 0; head < heads; ++head) {
        float* at = x + head * dim;
        const Vec factor = set1(length / __builtin_sqrtf(sum_of_squares(at, dim, 0.0F) + kDeltaEps));
        for (int64_t i = 0; i < dim; i += Vec::kLanes) {
            const int n = dim - i < Vec::kLanes ? static_cast<int>(dim - i) : Vec::kLanes;
            store_n(at + i, load_n(at + i, n) * factor, n);
        }
    }
}

LLMD_INLINE void decay_factors(const DeltaArgs& args, int64_t row) {
    const int64_t width = args.shape.decay_width();
    const int64_t each = width / args.shape.heads;  // decays of a head
    const float* x = args.decay + row * width;
    float* out = args.rows_of.decays + row * width;
    for (int64_t i = 0; i < width; i += Vec::kLanes) {
        const int n = width - i < Vec::kLanes ? static_cast<int>(width - i) : Vec::kLanes;
        float rates[Vec::kLanes] = {};
        for (int lane = 0; lane < n; ++lane) rates[lane] = -args.rates[(i + lane) / each];
        const Vec time = softplus(load_n(x + i, n) + load_n(args.bias + i, n));
        store_n(out + i, exp(load(rates) * time), n);
    }
}

void delta_rows(const DeltaArgs& args, Worker& worker) {
    const DeltaShape& shape = args.shape;
    const int64_t keys = shape.key_width();
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        const DeltaRow row = delta_row(args, r);
        convolve(args, row, args.inputs[0], keys, 0);
        convolve(args, row, args.inputs[1], keys, keys);
        convolve(args, row, args.inputs[2], shape.value_width(), 2 * keys);
        float* mixed = args.rows_of.mixed + r * shape.width();
        const float length = 1.0F / __builtin_sqrtf(static_cast<float>(shape.key_dim));
        normalize_heads(mixed, shape.key_heads, shape.key_dim, length);
        normalize_heads(mixed + keys, shape.key_heads, shape.key_dim, 1.0F);
        decay_factors(args, r);
        const float* beta = args.beta + r * shape.heads;
        float* shares = args.rows_of.shares + r * shape.heads;
        for (int64_t i = 0; i < shape.heads; i += Vec::kLanes) {
            const int n = shape.heads - i < Vec::kLanes ? static_cast<int>(shape.heads - i) : Vec::kLanes;
            store_n(shares + i, sigmoid(load_n(beta + i, n)), n);
        }
    });
}

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
struct DeltaStep {
    const float* q;
    const float* k;
    const float* decays;  // of each element, or of the head
    float share;
    const float* v;
    float* out;
};

// A whole vector, or its first `n` elements.
template <bool kWhole>
LLMD_INLINE Vec load_some(const float* p, int n) {
    if constexpr (kWhole) return load(p);
    return load_n(p, n);
}
template <bool kWhole>
LLMD_INLINE void store_some(float* p, Vec a, int n) {
    if constexpr (kWhole) return store(p, a);
    store_n(p, a, n);
}

// Calls f(i, Index<partial sum>) for all elements of a key.
template <class F>
LLMD_INLINE void each_element(int64_t key_dim, F&& f) {
    int64_t i = 0;
    for (; i + kPartialSums <= key_dim; i += kPartialSums)
        unroll<kPartialSums>([&](auto part) LLMD_LAMBDA { f(i + part, part); });
    for (; i < key_dim; ++i) f(i, Index<0>{});
}

// Changes kVecs vectors of columns, the first at `first`; of the last one, `n` columns exist.
template <bool kPerElement, bool kWhole, int kVecs>
LLMD_INLINE void update_columns(const StateTile& tile, const DeltaStep& step, int64_t first, int n) {
    const int64_t stride = kWhole ? kStateCols : tile.cols - tile.whole();
    float* at[kVecs];
    Vec sums[kVecs * kPartialSums];
    const auto clear = [&]() LLMD_LAMBDA {
        unroll<kVecs * kPartialSums>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    };
    const auto added = [&](auto v) LLMD_LAMBDA {
        const Vec* of = sums + v * kPartialSums;
        return (of[0] + of[1]) + (of[2] + of[3]);
    };
    unroll<kVecs>([&](auto v) LLMD_LAMBDA { at[v] = tile.column(first + v * Vec::kLanes); });
    const auto decay = [&](int64_t i) LLMD_LAMBDA { return set1(step.decays[kPerElement ? i : 0]); };
    clear();
    each_element(tile.key_dim, [&](int64_t i, auto part) LLMD_LAMBDA {
        Vec factor = set1(step.k[i]);
        if constexpr (kPerElement) factor = factor * decay(i);
        unroll<kVecs>([&](auto v) LLMD_LAMBDA {
            Vec& sum = sums[v * kPartialSums + part];
            sum = fma(factor, load_some<kWhole>(at[v] + i * stride, n), sum);
        });
    });
    Vec change[kVecs];
    unroll<kVecs>([&](auto v) LLMD_LAMBDA {
        Vec found = added(v);
        if constexpr (!kPerElement) found = found * decay(0);
        const Vec value = load_some<kWhole>(step.v + first + v * Vec::kLanes, n);
        change[v] = (value - found) * set1(step.share);
    });
    clear();
    each_element(tile.key_dim, [&](int64_t i, auto part) LLMD_LAMBDA {
        const Vec kept = decay(i);
        const Vec key = set1(step.k[i]);
        const Vec query = set1(step.q[i]);
        unroll<kVecs>([&](auto v) LLMD_LAMBDA {
            float* state = at[v] + i * stride;
            const Vec next = fma(key, change[v], load_some<kWhole>(state, n) * kept);
            store_some<kWhole>(state, next, n);
            Vec& sum = sums[v * kPartialSums + part];
            sum = fma(query, next, sum);
        });
    });
    unroll<kVecs>([&](auto v)
                      LLMD_LAMBDA { store_some<kWhole>(step.out + first + v * Vec::kLanes, added(v), n); });
}

template <bool kPerElement>
LLMD_INLINE void update_tile(const StateTile& tile, const DeltaStep& step) {
    int64_t first = 0;
    for (; first + kTogether * Vec::kLanes <= tile.whole(); first += kTogether * Vec::kLanes)
        update_columns<kPerElement, true, kTogether>(tile, step, first, Vec::kLanes);
    for (; first + Vec::kLanes <= tile.whole(); first += Vec::kLanes)
        update_columns<kPerElement, true, 1>(tile, step, first, Vec::kLanes);
    for (; first < tile.cols; first += Vec::kLanes) {
        const int64_t left = tile.cols - first;
        const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
        update_columns<kPerElement, false, 1>(tile, step, first, n);
    }
}

// Brings the state that a sequence begins with to the slot that it writes.
LLMD_INLINE void begin_state(const DeltaArgs& args, int64_t sequence, int64_t at, int64_t count) {
    const int64_t read = args.slots[2 * sequence];
    const int64_t written = args.slots[2 * sequence + 1];
    const int64_t size = args.shape.state();
    float* to = args.pool + written * size + at;
    const size_t bytes = sizeof(float) * static_cast<size_t>(count);
    if (read < 0)
        std::memset(to, 0, bytes);
    else if (read != written)
        std::memcpy(to, args.pool + read * size + at, bytes);
}

// Runs the rows of a sequence over a tile of columns of a head.
LLMD_INLINE void run_columns(const DeltaArgs& args, int64_t sequence, int64_t head, int64_t first) {
    const DeltaShape& shape = args.shape;
    const int64_t left = shape.value_dim - first;
    const int64_t cols = left < kTileCols ? left : kTileCols;
    const int64_t at = shape.kept() + head * shape.key_dim * shape.value_dim + first * shape.key_dim;
    begin_state(args, sequence, at, cols * shape.key_dim);
    const StateTile tile{args.pool + args.slots[2 * sequence + 1] * shape.state() + at, cols, shape.key_dim};
    const int64_t keys = shape.key_width();
    const int64_t key = shape.key_head(head) * shape.key_dim;
    const int64_t value = head * shape.value_dim + first;
    const int64_t decays = shape.per_element ? shape.key_dim : 1;
    for (int64_t r = args.row_offsets[sequence]; r < args.row_offsets[sequence + 1]; ++r) {
        const float* mixed = args.rows_of.mixed + r * shape.width();
        const DeltaStep step{mixed + key,
                             mixed + keys + key,
                             args.rows_of.decays + r * shape.decay_width() + head * decays,
                             args.rows_of.shares[r * shape.heads + head],
                             mixed + 2 * keys + value,
                             args.out + r * shape.value_width() + value};
        if (shape.per_element)
            update_tile<true>(tile, step);
        else
            update_tile<false>(tile, step);
    }
}

// Keeps the last rows of a sequence for the convolutions of the next step.
LLMD_INLINE void keep_rows(const DeltaArgs& args, int64_t sequence) {
    const DeltaShape& shape = args.shape;
    const int64_t count = shape.taps - 1;
    const int64_t first = args.row_offsets[sequence];
    const int64_t rows = args.row_offsets[sequence + 1] - first;
    const int64_t widths[3] = {shape.key_width(), shape.key_width(), shape.value_width()};
    begin_state(args, sequence, 0, shape.kept());
    float* kept = args.pool + args.slots[2 * sequence + 1] * shape.state();
    for (int64_t j = 0; j < count; ++j) {
        const int64_t number = rows - count + j;  // in the step; negative: kept before
        float* to = kept + j * shape.width();
        if (number < 0) {
            std::memmove(to, kept + (j + rows) * shape.width(),
                         sizeof(float) * static_cast<size_t>(shape.width()));
            continue;
        }
        for (int i = 0; i < 3; to += widths[i], ++i) {
            std::memcpy(to, args.inputs[i] + (first + number) * widths[i],
                        sizeof(float) * static_cast<size_t>(widths[i]));
        }
    }
}

void delta_states(const DeltaArgs& args, Worker& worker) {
    const DeltaShape& shape = args.shape;
    const int64_t tiles = (shape.value_dim + kTileCols - 1) / kTileCols;
    const int64_t each = shape.heads * tiles + 1;  // the last item keeps rows
    each_near(worker, args.sequences * each, 1, [&](int64_t item) LLMD_LAMBDA {
        const int64_t sequence = item / each;
        const int64_t number = item % each;
        if (number == each - 1) return keep_rows(args, sequence);
        run_columns(args, sequence, number / tiles, number % tiles * kTileCols);
    });
}

}  // namespace llmd::LLMD_ISA
