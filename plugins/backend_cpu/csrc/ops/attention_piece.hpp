// A piece of an attention op: some queries of one sequence and KV head, and one partition of positions.

#pragma once

#include "ops/attention_plan.hpp"
#include "ops/kv_blocks.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kLine = 64;  // bytes
constexpr int kVecsPerBlock = static_cast<int>(kBlockLen) / Vec::kLanes;
constexpr float kMinusInfinity = -__builtin_inff();
constexpr int64_t kAhead = 8;  // blocks are prefetched this long before they are read

// A query: its place in the step, and the positions that it attends to; if positions are chosen, their
// places in the list of the row.
struct Query {
    int64_t row;
    int64_t head;
    int64_t first;
    int64_t last;
};

// The state of queries after some positions: the largest score, the sum of exponentials relative to it,
// and the sum of values weighted by these. Tops and totals are [queries], outputs [queries][padded_dim].
struct Partial {
    float* tops;
    float* totals;
    float* outputs;

    Partial(float* memory, int64_t queries)
        : tops(memory), totals(memory + queries), outputs(memory + 2 * queries) {}
};

// The runs of kRun tokens in a partition, `count` of them, beginning at position `start`: the keys of one
// head, with its values `half_bytes` after them. Scores are computed for several runs at a time, so the
// kAheadRuns runs after the partition may be read; if the sequence has no more, they repeat the last one.
template <int64_t kRun>
struct Partition {
    static constexpr int64_t kRunTokens = kRun;
    static constexpr int64_t kAheadRuns = kAhead * kBlockLen / kRun;

    int64_t start;
    int64_t count;
    int64_t half_bytes;
    const uint8_t* at[kPartition / kRun + kAheadRuns];

    LLMD_INLINE_MEMBER int64_t tokens() const { return count * kRun; }
    LLMD_INLINE_MEMBER const uint8_t* keys(int64_t run) const { return at[run]; }
    LLMD_INLINE_MEMBER const uint8_t* values(int64_t run) const { return at[run] + half_bytes; }
    // What is read `kAheadRuns` runs after a run: all keys of a partition come before its values.
    LLMD_INLINE_MEMBER const uint8_t* after_keys(int64_t run) const {
        const int64_t next = run + kAheadRuns;
        return next < count ? keys(next) : values(next - count < count ? next - count : run);
    }
    LLMD_INLINE_MEMBER const uint8_t* after_values(int64_t run) const {
        const int64_t next = run + kAheadRuns;
        return next < count ? values(next) : keys(next);
    }
};
using KvPartition = Partition<kBlockLen>;  // of blocks
// Of latent vectors, which may be scattered. There are as many as whole blocks have: the last one is
// repeated.
using LatentPartition = Partition<1>;

// Cuts queries into runs whose sums fit into registers: calls f(Index<size>, first).
template <int kMost, class F>
LLMD_INLINE void each_run(int queries, F&& f) {
    int first = 0;
    const auto run = [&](auto size) LLMD_LAMBDA {
        if constexpr (decltype(size){} <= kMost) {
            for (; first + size <= queries; first += size) f(size, first);
        }
    };
    run(Index<24>{});
    run(Index<8>{});
    run(Index<4>{});
    run(Index<3>{});
    run(Index<2>{});
    run(Index<1>{});
}

// The largest power of two of things that fit into `registers` if one needs `each` registers for its sums.
constexpr int together(int registers, int each, int most) {
    int count = 1;
    while (2 * count <= most && 2 * count * each <= registers) count *= 2;
    return count;
}

LLMD_INLINE Vec finish_score(const AttentionArgs& args, Vec score) {
    return args.softcap > 0.0F ? softcap(score, args.softcap) : score;
}

}  // namespace llmd::LLMD_ISA
