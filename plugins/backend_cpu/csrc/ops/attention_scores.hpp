// The first half of an attention tile: scores of its queries, and their exponentials under a running maximum.

#pragma once

namespace llmd::LLMD_ISA {

constexpr int64_t kChunk = 512;  // positions between two rescalings of the online softmax
constexpr int kVecsPerBlock = static_cast<int>(kBlockLen) / Vec::kLanes;
constexpr float kMinusInfinity = -__builtin_inff();

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

}  // namespace llmd::LLMD_ISA
