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

// One query, and the state of its online softmax.
struct Query {
    int64_t row;    // of the step
    int64_t head;   // query head
    int64_t first;  // first position that it sees
    int64_t last;   // its own position
    float top;      // largest score so far
    Vec total;      // sum of exponentials, a partial sum for each lane
};

// Scratch of a thread: queries [padded_dim][kQueries], then probabilities [kQueries][kChunk], then outputs
// [kQueries][padded_dim].
struct TileScratch {
    float* queries;
    float* scores;
    float* outputs;
};

int64_t attention_scratch(int64_t head_dim) { return kQueryTile * (2 * padded_dim(head_dim) + kChunk); }

void begin(const AttentionArgs& args, const QueryTile& tile, Query* queries, const TileScratch& scratch) {
    for (int m = 0; m < tile.queries; ++m) {
        const int64_t number = tile.first + m;
        Query& query = queries[m];
        query.row = tile.first_row + number / tile.repeats;
        query.head = tile.kv_head * tile.repeats + number % tile.repeats;
        query.last = args.positions[query.row];
        const int64_t oldest = query.last - args.window + 1;
        query.first = args.window > 0 && oldest > 0 ? oldest : 0;
        query.top = kMinusInfinity;
        query.total = set1(0.0F);
        const float* q = args.q + (query.row * args.heads + query.head) * args.head_dim;
        for (int64_t d = 0; d < args.head_dim; ++d) scratch.queries[d * tile.queries + m] = q[d];
    }
    const int64_t outputs = tile.queries * padded_dim(args.head_dim);
    for (int64_t i = 0; i < outputs; i += Vec::kLanes) store(scratch.outputs + i, set1(0.0F));
}

// Scores of kBlocks blocks at a time: [kQueries][kChunk] from column `column` on.
template <class Element, int kQueries, int kBlocks>
void score_blocks(const AttentionArgs& args, const Element* const* keys, const TileScratch& scratch,
                  int64_t column) {
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
void exponentiate(Query& query, float* scores, int64_t columns, float* out, int64_t dim) {
    Vec top = set1(query.top);
    for (int64_t i = 0; i < columns; i += Vec::kLanes) top = max(top, load(scores + i));
    const float largest_score = largest(top);
    const Vec rescale = exp(set1(query.top) - set1(largest_score));
    Vec total = query.total * rescale;
    for (int64_t i = 0; i < columns; i += Vec::kLanes) {
        const Vec e = exp(load(scores + i) - set1(largest_score));
        store(scores + i, e);
        total = total + e;
    }
    if (largest_score > query.top) {
        for (int64_t i = 0; i < dim; i += Vec::kLanes) store(out + i, load(out + i) * rescale);
    }
    query.top = largest_score;
    query.total = total;
}

// Adds kVecs vectors of weighted values of a block that every query of the tile sees whole.
template <class Element, int kQueries, int kVecs>
void add_values(const Element* values, const TileScratch& scratch, int64_t column, int64_t dim, int64_t d) {
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
void add_some_values(const Element* values, const float* probabilities, float* out, int64_t dim,
                     int64_t first, int64_t last) {
    for (int64_t d = 0; d < dim; d += Vec::kLanes) {
        Vec total = load(out + d);
        for (int64_t t = first; t < last; ++t)
            total = fma(set1(probabilities[t]), load(values + t * dim + d), total);
        store(out + d, total);
    }
}

template <class Element, int kQueries>
void add_block(const Query* queries, const Element* values, const TileScratch& scratch, int64_t start,
               int64_t column, int64_t dim) {
    constexpr int kVecs = kQueryTile / kQueries > 4 ? 4 : kQueryTile / kQueries;
    bool all = true;
    for (int m = 0; m < kQueries; ++m) {
        all = all && queries[m].first <= start && start + kBlockLen - 1 <= queries[m].last;
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
        const int64_t first = queries[m].first > start ? queries[m].first - start : 0;
        const int64_t last =
            queries[m].last + 1 - start < kBlockLen ? queries[m].last + 1 - start : kBlockLen;
        const float* probabilities = scratch.scores + m * kChunk + column;
        add_some_values(values, probabilities, scratch.outputs + m * dim, dim, first, last);
    }
}

void write_outputs(const AttentionArgs& args, const Query* queries, int count, const float* outputs,
                   int64_t dim) {
    for (int m = 0; m < count; ++m) {
        const Query& query = queries[m];
        const Vec inverse = set1(1.0F / sum(query.total));
        float* out = args.out + (query.row * args.heads + query.head) * args.head_dim;
        for (int64_t d = 0; d < args.head_dim; d += Vec::kLanes) {
            const int64_t left = args.head_dim - d;
            const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
            store_n(out + d, load(outputs + m * dim + d) * inverse, n);
        }
    }
}

template <class Element, int kQueries>
void attend_tile(const AttentionArgs& args, const QueryTile& tile, float* memory) {
    constexpr int kTogether = kQueryTile / kQueries > 4 ? 4 : kQueryTile / kQueries;
    const KvLayout layout{args.kv_heads, padded_dim(args.head_dim)};
    const int64_t dim = layout.padded_dim;
    const TileScratch scratch{memory, memory + kQueries * dim, memory + kQueries * (dim + kChunk)};
    Query queries[kQueries];
    begin(args, tile, queries, scratch);

    const Element* pool = static_cast<const Element*>(args.pool) + tile.kv_head * layout.head_size();
    const auto keys_of = [&](int64_t position) LLMD_LAMBDA {
        return pool + tile.blocks[position / kBlockLen] * layout.block_size();
    };
    const int64_t end = queries[kQueries - 1].last + 1;
    for (int64_t start = queries[0].first / kBlockLen * kBlockLen, stop; start < end; start = stop) {
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
            if (queries[m].last < start || queries[m].first >= start + columns) continue;
            float* scores = scratch.scores + m * kChunk;
            hide(scores, start, columns, queries[m].first, queries[m].last);
            exponentiate(queries[m], scores, columns, scratch.outputs + m * dim, dim);
        }
        for (b = 0; b < blocks; ++b) {
            const int64_t position = start + b * kBlockLen;
            const Element* values = keys_of(position) + layout.half();
            add_block<Element, kQueries>(queries, values, scratch, position, b * kBlockLen, dim);
        }
    }
    write_outputs(args, queries, kQueries, scratch.outputs, dim);
}

}  // namespace llmd::LLMD_ISA
