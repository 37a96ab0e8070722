// A tile of attention: queries of one sequence and KV head that go through the same partitions of
// positions.

#pragma once

#include <cmath>

#include "ops/attention_codes.hpp"
#include "ops/attention_floats.hpp"
#include "ops/attention_latent.hpp"

namespace llmd::LLMD_ISA {

struct Tile {
    const int32_t* blocks;  // of the sequence
    Cut cut;
    int64_t kv_head;
    // Query i of the sequence and KV head is row i / repeats, head i % repeats of the group.
    int64_t first;
    int queries;
};

// Scratch of a thread. Queries are stored per piece: as floats [head_dim][queries of the piece], for latent
// vectors [queries of the piece][padded_dim], or as words [padded_dim] in the space of as many floats, with
// their factors.
struct TileScratch {
    float* queries;
    float* factors;
    float* running;    // a partial of the whole tile
    float* partition;  // a partial of one piece and partition
    float* scores;     // [kPieceQueries][kPartition], then exponentials
    float* words;      // int16 [kPieceQueries][kPartition]
    float* weights;    // [kPartition], or a head while queries are loaded

    static constexpr int64_t kTileQueries = kPieceQueries * kMostPieces;

    TileScratch(float* memory, int64_t dim)
        : queries(memory),
          factors(queries + kTileQueries * dim),
          running(factors + kTileQueries),
          partition(running + partial_floats(kTileQueries, dim)),
          scores(partition + partial_floats(kPieceQueries, dim)),
          words(scores + kPieceQueries * kPartition),
          weights(words + kPieceQueries * kPartition / 2) {}

    // Floats in total.
    static int64_t size(int64_t dim) {
        return kTileQueries * (dim + 1) + partial_floats(kTileQueries, dim) +
               partial_floats(kPieceQueries, dim) + kPieceQueries * kPartition * 3 / 2 +
               (dim > kPartition ? dim : kPartition);
    }
};

// The dimension that buffers are sized for, regardless of the KV dtype.
LLMD_INLINE int64_t widest_dim(int64_t head_dim) {
    return KvLayout{KvDtype::kInt4, 1, head_dim}.padded_dim();
}

template <class Element>
class TileRun {
  public:
    TileRun(const AttentionArgs& args, const Tile& tile, float* memory)
        : args_(args),
          tile_(tile),
          pool_(args),
          dim_(pool_.layout.padded_dim()),
          scratch_(memory, widest_dim(args.head_dim)) {
        const int64_t repeats = args.heads / args.kv_heads;
        for (int m = 0; m < tile.queries; ++m) {
            Query& query = queries_[m];
            query.row = tile.cut.first_row + (tile.first + m) / repeats;
            query.head = tile.kv_head * repeats + (tile.first + m) % repeats;
            query.last = last_seen(args, args.causal ? query.row : tile.cut.last_row);
            const int64_t oldest = query.last - args.window + 1;
            query.first = args.window > 0 && oldest > 0 ? oldest : 0;
        }
    }

    void load_queries() {
        for (int m = 0; m < tile_.queries; ++m) {
            const float* q = args_.q + (queries_[m].row * args_.heads + queries_[m].head) * args_.head_dim;
            const int piece = m / kPieceQueries * kPieceQueries;
            if constexpr (kCoded<Element>) {
                float* head = scratch_.weights;
                for (int64_t d = 0; d < dim_; ++d) head[d] = d < args_.head_dim ? q[d] : 0.0F;
                if constexpr (kRotated<Element>) rotate(head, args_.head_dim);
                scratch_.factors[m] = round_query(head, dim_, args_.scale, words_of(m)) * kCodeScale<Element>;
            } else if (args_.latent) {
                float* to = floats_of(m);
                for (int64_t d = 0; d < dim_; ++d) to[d] = d < args_.head_dim ? q[d] : 0.0F;
            } else {
                float* to = floats_of(piece) + (m - piece);
                for (int64_t d = 0; d < args_.head_dim; ++d) to[d * piece_queries(piece)] = q[d];
            }
        }
    }

    // Attends to the positions of one partition: calls keep(piece, count, partial) for the pieces of the
    // tile, one after the other.
    template <class Keep>
    void attend_partition(int64_t number, Keep&& keep) {
        for (int piece = 0; piece < tile_.queries; piece += kPieceQueries) {
            const int count = piece_queries(piece);
            const Partial partial(scratch_.partition, count);
            if (attend_piece(number, piece, count, partial)) keep(piece, count, partial);
        }
    }

    // The state of queries before any position.
    void clear(Partial partial, int count) const {
        for (int m = 0; m < count; ++m) {
            partial.tops[m] = kMinusInfinity;
            partial.totals[m] = 0.0F;
        }
        for (int64_t i = 0; i < count * dim_; i += Vec::kLanes) store(partial.outputs + i, set1(0.0F));
    }

    // Adds the partial state of later positions.
    void merge(Partial into, Partial from, int count) const {
        for (int m = 0; m < count; ++m) {
            if (from.tops[m] == kMinusInfinity) continue;
            const float top = into.tops[m] > from.tops[m] ? into.tops[m] : from.tops[m];
            const Vec before = exp(set1(into.tops[m]) - set1(top));
            const Vec after = exp(set1(from.tops[m]) - set1(top));
            float* out = into.outputs + m * dim_;
            const float* added = from.outputs + m * dim_;
            for (int64_t d = 0; d < dim_; d += Vec::kLanes)
                store(out + d, fma(load(added + d), after, load(out + d) * before));
            float total[Vec::kLanes];
            store(total, fma(set1(from.totals[m]), after, set1(into.totals[m]) * before));
            into.totals[m] = total[0];
            into.tops[m] = top;
        }
    }

    void write(int first, int count, Partial partial) const {
        for (int m = 0; m < count; ++m) {
            const Query& query = queries_[first + m];
            const Vec inverse = set1(share_of_values(partial.tops[m], partial.totals[m], query.head));
            if (args_.sums != nullptr) {
                args_.sums[query.row * args_.heads + query.head] =
                    log_sum(partial.tops[m], partial.totals[m], query.head);
            }
            float* result = partial.outputs + m * dim_;
            for (int64_t d = 0; d < dim_; d += Vec::kLanes) store(result + d, load(result + d) * inverse);
            if constexpr (kRotated<Element>) rotate(result, args_.head_dim);
            float* out = args_.out + (query.row * args_.heads + query.head) * args_.value_dim;
            std::memcpy(out, result, sizeof(float) * static_cast<size_t>(args_.value_dim));
        }
    }

    // Runs the whole tile.
    void run() {
        const Cut& cut = tile_.cut;
        const auto running = [&](int piece) {
            return Partial(scratch_.running + partial_floats(piece, dim_), piece_queries(piece));
        };
        for (int piece = 0; piece < tile_.queries; piece += kPieceQueries)
            clear(running(piece), piece_queries(piece));
        for (int64_t c = cut.first_partition; c < cut.first_partition + cut.partitions; ++c) {
            attend_partition(
                c, [&](int piece, int count, Partial partial) { merge(running(piece), partial, count); });
        }
        for (int piece = 0; piece < tile_.queries; piece += kPieceQueries)
            write(piece, piece_queries(piece), running(piece));
    }

  private:
    // What the outputs of a head are multiplied by: 1 / the sum of exponentials, with that of its sink.
    float share_of_values(float top, float total, int64_t head) const {
        if (top == kMinusInfinity) return 0.0F;  // nothing is attended to
        if (args_.sinks == nullptr) return 1.0F / total;
        const float sink = args_.sinks[head];
        const Vec most = set1(top > sink ? top : sink);  // no exponential overflows
        float of_values[Vec::kLanes];
        float of_sink[Vec::kLanes];
        store(of_values, exp(set1(top) - most));
        store(of_sink, exp(set1(sink) - most));
        return of_values[0] / (total * of_values[0] + of_sink[0]);
    }

    // The logarithm of the sum of exponentials, with that of the sink of the head.
    float log_sum(float top, float total, int64_t head) const {
        const double sink =
            args_.sinks == nullptr ? -__builtin_inf() : static_cast<double>(args_.sinks[head]);
        const double most = static_cast<double>(top) > sink ? static_cast<double>(top) : sink;
        if (most == -__builtin_inf()) return kMinusInfinity;
        const double of_values =
            top == kMinusInfinity ? 0.0 : static_cast<double>(total) * ::exp(static_cast<double>(top) - most);
        return static_cast<float>(most + ::log(of_values + ::exp(sink - most)));
    }

    int piece_queries(int piece) const {
        return tile_.queries - piece < kPieceQueries ? tile_.queries - piece : kPieceQueries;
    }
    float* floats_of(int piece) const { return scratch_.queries + piece * dim_; }
    int16_t* words_of(int query) const { return reinterpret_cast<int16_t*>(scratch_.queries + query * dim_); }

    // Attends to the positions of one partition; returns false if no query of the piece has any there.
    bool attend_piece(int64_t number, int piece, int count, Partial partial) {
        const Query* queries = queries_ + piece;
        const int64_t start = number * kPartition;
        if (queries[count - 1].last < start || queries[0].first >= start + kPartition) return false;
        if constexpr (kCoded<Element>) {
            KvPartition partition;
            find(start, queries[0].first, queries[count - 1].last, partition);
            score_codes<Element>(args_, pool_.layout, partition, words_of(piece), scratch_.factors + piece,
                                 count, scratch_.scores);
            exponentiate(partition, queries, count, partial);
            add_codes<Element>(pool_.layout, partition, scratch_.scores, count, partial.outputs,
                               reinterpret_cast<int16_t*>(scratch_.words), scratch_.weights);
        } else if (args_.latent) {
            LatentPartition partition;
            find(start, queries[0].first, queries[count - 1].last, partition);
            score_latent<Element>(partition, floats_of(piece), count, dim_, args_.scale, scratch_.scores);
            cap_scores(partition.tokens(), count);
            exponentiate(partition, queries, count, partial);
            add_values(partition, queries, count, partial, args_.value_dim);
        } else {
            KvPartition partition;
            find(start, queries[0].first, queries[count - 1].last, partition);
            score_floats<Element>(args_, partition, floats_of(piece), count, scratch_.scores);
            exponentiate(partition, queries, count, partial);
            add_values(partition, queries, count, partial, dim_);
        }
        return true;
    }

    // Finds the blocks of a partition between the first and the last position that is attended to.
    void find(int64_t start, int64_t first, int64_t last, KvPartition& partition) const {
        partition.start = first > start ? first / kBlockLen * kBlockLen : start;
        const int64_t end = last + 1 < start + kPartition ? last + 1 : start + kPartition;
        partition.count = (end - partition.start + kBlockLen - 1) / kBlockLen;
        partition.half_bytes = pool_.layout.values_at();
        const int32_t* blocks = tile_.blocks + partition.start / kBlockLen;
        const int64_t left = (last - partition.start) / kBlockLen;
        for (int64_t b = 0; b < partition.count + kAhead; ++b)
            partition.at[b] = pool_.keys(blocks[b < left ? b : left], tile_.kv_head);
    }

    // Finds the latent vectors of a partition between the first and the last one that is attended to. Those
    // before a window may be gone.
    void find(int64_t start, int64_t first, int64_t last, LatentPartition& partition) const {
        const int64_t row = tile_.cut.first_row;  // the only one of the tile, if positions are chosen
        if (first > start) {
            const int64_t end = start + kPartition - 1;
            start = first / kBlockLen * kBlockLen;  // a multiple of the lanes: sums keep their order
            last = last < end ? last : end;
        }
        const float* chosen = args_.chosen == nullptr ? nullptr : args_.chosen + row * args_.top_k;
        list_latent(pool_, tile_.blocks, tile_.kv_head, start, last, chosen, args_.positions[row], partition);
    }

    void cap_scores(int64_t tokens, int count) const {
        if (args_.softcap == 0.0F) return;
        for (int m = 0; m < count; ++m) {
            float* of = scratch_.scores + m * kPartition;
            for (int64_t i = 0; i < tokens; i += Vec::kLanes)
                store(of + i, finish_score(args_, load(of + i)));
        }
    }

    template <class Tokens>
    void add_values(const Tokens& partition, const Query* queries, int count, Partial partial,
                    int64_t width) const {
        for (int64_t i = 0; i < count * dim_; i += Vec::kLanes) store(partial.outputs + i, set1(0.0F));
        add_floats<Element>(partition, queries, count, scratch_.scores, partial.outputs, dim_, width);
    }

    template <class Tokens>
    void exponentiate(const Tokens& partition, const Query* queries, int count, Partial partial) const {
        for (int m = 0; m < count; ++m) {
            exponentiate(partition.tokens(), queries[m].first - partition.start,
                         queries[m].last + 1 - partition.start, m, partial);
        }
    }

    // Turns `columns` scores of a query into exponentials; 0 for those outside [first, behind), which it does
    // not attend to.
    void exponentiate(int64_t columns, int64_t first, int64_t behind, int m, Partial partial) const {
        float* scores = scratch_.scores + m * kPartition;
        for (int64_t i = 0; i < columns && i < first; ++i) scores[i] = kMinusInfinity;
        for (int64_t i = behind > 0 ? behind : 0; i < columns; ++i) scores[i] = kMinusInfinity;
        Vec most = set1(kMinusInfinity);
        for (int64_t i = 0; i < columns; i += Vec::kLanes) most = max(most, load(scores + i));
        const float top = largest(most);
        Vec total = set1(0.0F);
        // If every score is minus infinity, subtracting it would give NaN.
        const Vec shift = set1(top == kMinusInfinity ? 0.0F : top);
        for (int64_t i = 0; i < columns; i += Vec::kLanes) {
            const Vec e = exp(load(scores + i) - shift);
            store(scores + i, e);
            total = total + e;
        }
        partial.tops[m] = top;
        partial.totals[m] = sum(total);
    }

    const AttentionArgs& args_;
    const Tile& tile_;
    KvBlocks pool_;
    int64_t dim_;
    TileScratch scratch_;
    Query queries_[TileScratch::kTileQueries];
};

}  // namespace llmd::LLMD_ISA
