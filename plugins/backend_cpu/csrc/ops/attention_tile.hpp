// One tile of attention: a few queries of one sequence that read the same keys and values.

#pragma once

namespace llmd::LLMD_ISA {

constexpr int64_t kChunk = 512;  // positions between two rescalings of the online softmax
constexpr int kVecsPerBlock = static_cast<int>(kBlockLen) / Vec::kLanes;
constexpr float kMinusInfinity = -__builtin_inff();

struct QueryTile {
    const int32_t* blocks;  // of the sequence
    int64_t first_row;      // of the sequence in the step
    int64_t kv_head;
    int64_t first;    // query i of the sequence and kv head is row i / repeats, head i % repeats of the group
    int64_t repeats;  // query heads that share a kv head
    int queries;
};

// The state of the online softmax, for each query.
template <int kQueries>
struct SoftmaxState {
    int64_t row[kQueries];    // of the step
    int64_t head[kQueries];   // query head
    int64_t first[kQueries];  // first position that it sees
    int64_t last[kQueries];   // its own position
    float top[kQueries];      // largest score so far
    Vec total[kQueries];      // sum of exponentials, a partial sum for each lane
};

// Scratch of a thread: queries [padded_dim][kQueries], then probabilities [kQueries][kChunk], then outputs
// [kQueries][padded_dim].
struct TileScratch {
    float* queries;
    float* scores;
    float* outputs;
};

int64_t attention_scratch(int64_t head_dim) { return kQueryTile * (2 * padded_dim(head_dim) + kChunk); }

template <int kQueries>
LLMD_INLINE void begin(const AttentionArgs& args, const QueryTile& tile, SoftmaxState<kQueries>& state,
                       const TileScratch& scratch) {
    for (int m = 0; m < kQueries; ++m) {
        const int64_t query = tile.first + m;
        state.row[m] = tile.first_row + query / tile.repeats;
        state.head[m] = tile.kv_head * tile.repeats + query % tile.repeats;
        state.last[m] = args.positions[state.row[m]];
        const int64_t oldest = state.last[m] - args.window + 1;
        state.first[m] = args.window > 0 && oldest > 0 ? oldest : 0;
        state.top[m] = kMinusInfinity;
        state.total[m] = set1(0.0F);
        const float* q = args.q + (state.row[m] * args.heads + state.head[m]) * args.head_dim;
        for (int64_t d = 0; d < args.head_dim; ++d) scratch.queries[d * kQueries + m] = q[d];
    }
    const int64_t outputs = kQueries * padded_dim(args.head_dim);
    for (int64_t i = 0; i < outputs; i += Vec::kLanes) store(scratch.outputs + i, set1(0.0F));
}

// Scores of kBlocks blocks at a time: [kQueries][kChunk] from column `column` on.
template <class Element, int kQueries, int kBlocks>
LLMD_INLINE void score_blocks(const AttentionArgs& args, const Element* const* keys,
                              const TileScratch& scratch, int64_t column) {
    constexpr int kVecs = kBlocks * kVecsPerBlock;
    Vec sums[kQueries * kVecs];
    unroll<kQueries * kVecs>([&](auto i) LLMD_LAMBDA { sums[i] = set1(0.0F); });
    for (int64_t d = 0; d < args.head_dim; ++d) {
        Vec key[kVecs];
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            key[i] = load(keys[i / kVecsPerBlock] + d * kBlockLen + i % kVecsPerBlock * Vec::kLanes);
        });
        unroll<kQueries>([&](auto m) LLMD_LAMBDA {
            const Vec q = set1(scratch.queries[d * kQueries + m]);
            unroll<kVecs>([&](auto i)
                              LLMD_LAMBDA { sums[m * kVecs + i] = fma(q, key[i], sums[m * kVecs + i]); });
        });
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            Vec score = sums[m * kVecs + i] * set1(args.scale);
            if (args.softcap > 0.0F) score = softcap(score, args.softcap);
            store(scratch.scores + m * kChunk + column + i * Vec::kLanes, score);
        });
    });
}

// Scores of a query outside of what it sees become minus infinity. Columns [0, columns) stand for positions
// from `start` on.
LLMD_INLINE void hide(float* scores, int64_t start, int64_t columns, int64_t first, int64_t last) {
    for (int64_t i = 0; i < columns && start + i < first; ++i) scores[i] = kMinusInfinity;
    for (int64_t i = last + 1 > start ? last + 1 - start : 0; i < columns; ++i) scores[i] = kMinusInfinity;
}

// Turns scores into exponentials, and rescales what was summed before by the new largest score.
template <int kQueries>
LLMD_INLINE void exponentiate(SoftmaxState<kQueries>& state, const TileScratch& scratch, int m,
                              int64_t columns, int64_t dim) {
    float* scores = scratch.scores + m * kChunk;
    Vec top = set1(state.top[m]);
    for (int64_t i = 0; i < columns; i += Vec::kLanes) top = max(top, load(scores + i));
    const float largest_score = largest(top);
    const Vec rescale = exp(set1(state.top[m]) - set1(largest_score));
    Vec total = state.total[m] * rescale;
    for (int64_t i = 0; i < columns; i += Vec::kLanes) {
        const Vec e = exp(load(scores + i) - set1(largest_score));
        store(scores + i, e);
        total = total + e;
    }
    if (largest_score > state.top[m]) {
        float* out = scratch.outputs + m * dim;
        for (int64_t i = 0; i < dim; i += Vec::kLanes) store(out + i, load(out + i) * rescale);
    }
    state.top[m] = largest_score;
    state.total[m] = total;
}

// Adds kVecs vectors of weighted values of a block that every query of the tile sees whole.
template <class Element, int kQueries, int kVecs>
LLMD_INLINE void add_values(const Element* values, const TileScratch& scratch, int64_t column, int64_t dim,
                            int64_t d) {
    Vec sums[kQueries * kVecs];
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            sums[m * kVecs + i] = load(scratch.outputs + m * dim + d + i * Vec::kLanes);
        });
    });
    for (int64_t t = 0; t < kBlockLen; ++t) {
        Vec value[kVecs];
        unroll<kVecs>([&](auto i) LLMD_LAMBDA { value[i] = load(values + t * dim + d + i * Vec::kLanes); });
        unroll<kQueries>([&](auto m) LLMD_LAMBDA {
            const Vec p = set1(scratch.scores[m * kChunk + column + t]);
            unroll<kVecs>([&](auto i)
                              LLMD_LAMBDA { sums[m * kVecs + i] = fma(p, value[i], sums[m * kVecs + i]); });
        });
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kVecs>([&](auto i) LLMD_LAMBDA {
            store(scratch.outputs + m * dim + d + i * Vec::kLanes, sums[m * kVecs + i]);
        });
    });
}

// Adds the values of tokens [first, last) of a block to one query. What lies beyond may be anything, even
// NaN.
template <class Element>
LLMD_INLINE void add_some_values(const Element* values, const float* probabilities, float* out, int64_t dim,
                                 int64_t first, int64_t last) {
    for (int64_t d = 0; d < dim; d += Vec::kLanes) {
        Vec total = load(out + d);
        for (int64_t t = first; t < last; ++t)
            total = fma(set1(probabilities[t]), load(values + t * dim + d), total);
        store(out + d, total);
    }
}

template <class Element, int kQueries>
LLMD_INLINE void add_block(const SoftmaxState<kQueries>& state, const Element* values,
                           const TileScratch& scratch, int64_t start, int64_t column, int64_t dim) {
    constexpr int kVecs = kQueryTile / kQueries > 4 ? 4 : kQueryTile / kQueries;
    bool all = true;
    for (int m = 0; m < kQueries; ++m) {
        all = all && state.first[m] <= start && start + kBlockLen - 1 <= state.last[m];
    }
    if (all) {
        int64_t d = 0;
        for (; d + kVecs * Vec::kLanes <= dim; d += kVecs * Vec::kLanes) {
            add_values<Element, kQueries, kVecs>(values, scratch, column, dim, d);
        }
        for (; d < dim; d += Vec::kLanes) add_values<Element, kQueries, 1>(values, scratch, column, dim, d);
        return;
    }
    for (int m = 0; m < kQueries; ++m) {
        const int64_t first = state.first[m] > start ? state.first[m] - start : 0;
        const int64_t last = state.last[m] + 1 - start < kBlockLen ? state.last[m] + 1 - start : kBlockLen;
        const float* probabilities = scratch.scores + m * kChunk + column;
        add_some_values(values, probabilities, scratch.outputs + m * dim, dim, first, last);
    }
}

template <class Element, int kQueries>
void attend_tile(const AttentionArgs& args, const QueryTile& tile, float* memory) {
    constexpr int kTogether = kQueryTile / kQueries > 4 ? 4 : kQueryTile / kQueries;
    const KvLayout layout{args.kv_heads, padded_dim(args.head_dim)};
    const int64_t dim = layout.padded_dim;
    const TileScratch scratch{memory, memory + kQueries * dim, memory + kQueries * (dim + kChunk)};
    SoftmaxState<kQueries> state;
    begin(args, tile, state, scratch);

    const Element* pool = static_cast<const Element*>(args.pool) + tile.kv_head * layout.head_size();
    const auto keys_of = [&](int64_t position) LLMD_LAMBDA {
        return pool + tile.blocks[position / kBlockLen] * layout.block_size();
    };
    const int64_t end = state.last[kQueries - 1] + 1;
    for (int64_t start = state.first[0] / kBlockLen * kBlockLen, stop; start < end; start = stop) {
        stop = (start / kChunk + 1) * kChunk;
        const int64_t blocks = ((stop < end ? stop : end) - start + kBlockLen - 1) / kBlockLen;
        const int64_t columns = blocks * kBlockLen;
        int64_t b = 0;
        for (; b + kTogether <= blocks; b += kTogether) {
            const Element* keys[kTogether];
            for (int i = 0; i < kTogether; ++i) keys[i] = keys_of(start + (b + i) * kBlockLen);
            score_blocks<Element, kQueries, kTogether>(args, keys, scratch, b * kBlockLen);
        }
        for (; b < blocks; ++b) {
            const Element* keys = keys_of(start + b * kBlockLen);
            score_blocks<Element, kQueries, 1>(args, &keys, scratch, b * kBlockLen);
        }
        for (int m = 0; m < kQueries; ++m) {
            if (state.last[m] < start || state.first[m] >= start + columns) continue;
            hide(scratch.scores + m * kChunk, start, columns, state.first[m], state.last[m]);
            exponentiate(state, scratch, m, columns, dim);
        }
        for (b = 0; b < blocks; ++b) {
            const int64_t position = start + b * kBlockLen;
            add_block(state, keys_of(position) + layout.half(), scratch, position, b * kBlockLen, dim);
        }
    }
    for (int m = 0; m < kQueries; ++m) {
        const Vec inverse = set1(1.0F / sum(state.total[m]));
        float* out = args.out + (state.row[m] * args.heads + state.head[m]) * args.head_dim;
        for (int64_t d = 0; d < args.head_dim; d += Vec::kLanes) {
            const int64_t left = args.head_dim - d;
            const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
            store_n(out + d, load(scratch.outputs + m * dim + d) * inverse, n);
        }
    }
}

}  // namespace llmd::LLMD_ISA
