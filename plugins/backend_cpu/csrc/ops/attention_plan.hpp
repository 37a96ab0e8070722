// How the work of an attention op is cut into items for threads.
//
// The queries of a sequence for one KV head (its rows times the query heads that share the KV head) are
// cut into tiles. If one sequence makes up a large part of a step's work, as a long context that is
// decoded alone does, each partition of its positions becomes a separate item, and the results are merged
// in order. Partitions are counted from position 0, and whole tiles go through the same partitions: how
// the work is cut does not change a bit of the result.

#pragma once

#include "kernels.hpp"

namespace llmd::LLMD_ISA {

constexpr int64_t kPartition = 512;    // positions
constexpr int kPieceQueries = 24;      // queries of a tile that share one pass over a partition
constexpr int kMostPieces = 4;         // of a tile
constexpr int kSplitQueries = 8;       // queries of a tile whose partitions are items, or of a small step
constexpr int64_t kItemsOfThread = 4;  // tiles per thread to aim for, so that no thread waits long

// The sequence of a row.
LLMD_INLINE int64_t sequence_of(const AttentionArgs& args, int64_t row) {
    int64_t sequence = 0;
    while (args.row_offsets[sequence + 1] <= row) ++sequence;
    return sequence;
}

// The last position that a row attends to; if positions are chosen, its place in the list of the row.
LLMD_INLINE int64_t last_seen(const AttentionArgs& args, int64_t row) {
    const int64_t position = args.positions[row];
    return args.chosen != nullptr && position >= args.top_k ? args.top_k - 1 : position;
}

// How the work of one sequence is cut.
struct Cut {
    int64_t first_row;
    int64_t last_row;
    int64_t first_partition;
    int64_t partitions;
    int64_t tile_queries;
    int64_t tiles;  // per KV head
    bool split;     // each partition is an item

    int64_t items(int64_t kv_heads) const { return kv_heads * tiles * (split ? partitions : 1); }
    // The item of a split sequence: tiles that read the same partition come one after the other.
    int64_t item(int64_t tile, int64_t partition) const {
        return (tile / tiles * partitions + partition) * tiles + tile % tiles;
    }
    int64_t tile_of(int64_t item) const { return item / (partitions * tiles) * tiles + item % tiles; }
    int64_t partition_of(int64_t item) const { return item / tiles % partitions; }
};

class AttentionPlan {
  public:
    AttentionPlan(const AttentionArgs& args, int threads) : args_(args), threads_(threads) {
        for (int64_t s = 0; s < sequences(); ++s) {
            const Cut whole = rows_of(s);
            total_ += split_tiles(whole) * args.kv_heads * whole.partitions;
            queries_ += queries(whole) * args.kv_heads;
        }
    }

    // Rows with chosen positions are cut as if each were a sequence of its own.
    int64_t sequences() const { return args_.chosen != nullptr ? args_.rows : args_.sequences; }

    Cut cut(int64_t sequence) const {
        Cut cut = rows_of(sequence);
        // Fewer than 2 tiles per thread can be split; `attention_partials` relies on it.
        cut.split = args_.partials != nullptr && cut.partitions > 1 && cut.partitions * 2 * threads_ > total_;
        cut.tile_queries = cut.split ? kSplitQueries : tile_queries();
        cut.tiles = (queries(cut) + cut.tile_queries - 1) / cut.tile_queries;
        return cut;
    }

  private:
    int64_t repeats() const { return args_.heads / args_.kv_heads; }
    int64_t queries(const Cut& cut) const { return (cut.last_row + 1 - cut.first_row) * repeats(); }
    int64_t split_tiles(const Cut& cut) const { return (queries(cut) + kSplitQueries - 1) / kSplitQueries; }

    int64_t tile_queries() const {
        if (queries_ < threads_ * kPieceQueries) return kSplitQueries;
        const int64_t pieces = queries_ / (kItemsOfThread * threads_ * kPieceQueries);
        return kPieceQueries * (pieces < 1 ? 1 : pieces > kMostPieces ? kMostPieces : pieces);
    }

    Cut rows_of(int64_t sequence) const {
        Cut cut{};
        const bool single = args_.chosen != nullptr;
        cut.first_row = single ? sequence : args_.row_offsets[sequence];
        cut.last_row = single ? sequence : args_.row_offsets[sequence + 1] - 1;
        const int64_t oldest = args_.positions[cut.first_row] - args_.window + 1;
        cut.first_partition = args_.window > 0 && oldest > 0 ? oldest / kPartition : 0;
        cut.partitions = last_seen(args_, cut.last_row) / kPartition + 1 - cut.first_partition;
        return cut;
    }

    const AttentionArgs& args_;
    int64_t threads_;
    int64_t total_ = 0;    // partitions of all tiles, if every tile were split
    int64_t queries_ = 0;  // of all kv heads
};

// Floats in a `Partial`.
LLMD_INLINE int64_t partial_floats(int64_t queries, int64_t padded_dim) { return queries * (padded_dim + 2); }

}  // namespace llmd::LLMD_ISA
