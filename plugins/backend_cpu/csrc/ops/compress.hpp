// compress: out[r] = sum over tokens t of softmax(gate[t] + bias[t % stride]) * x[t], for each element
//
//   x, gate  [rows, width]  f32       bias  [stride, width]  f32       out  [rows, dim]  f32
//   pool     f32, f16 or bf16: latent vectors of x and gate of each token, one behind the other
//   rows     that of the last of `stride` tokens; the others are 0
//   tokens   these, with their last dim elements. If vectors overlap, width is 2 dim, and as many tokens
//            before them are added, with their first dim elements
//   work     one row at a time, first to keep x and gate, then to add them up
//   order    tokens ascending, in f32: a row has the same bits whatever rows share its step
//   check    NMSE < 1e-9 in f32   (the cases "compress" of llmd.testing.compressed_cases)
//   from     DeepSeek-AI 2026, "DeepSeek-V4 Technical Report", section 2.3

#pragma once

#include "ops/write_kv.hpp"

namespace llmd::LLMD_ISA {

// What a pool has of one token of a sequence.
template <class Element>
LLMD_INLINE Element* kept_parts(const KvBlocks& blocks, const int32_t* table, int64_t token) {
    auto* keys = reinterpret_cast<Element*>(blocks.keys(table[token / kBlockLen], 0));
    return keys + token % kBlockLen * blocks.layout.padded_dim();
}

// Calls f(row, the blocks of its sequence) for the rows that this thread takes.
template <class F>
LLMD_INLINE void each_placed_row(const AttentionArgs& args, Worker& worker, F&& f) {
    int64_t sequence = 0;
    each_near(worker, args.rows, 1, [&](int64_t r) LLMD_LAMBDA {
        if (r < args.row_offsets[sequence]) sequence = 0;
        while (args.row_offsets[sequence + 1] <= r) ++sequence;
        f(r, args.block_table + sequence * args.table_width);
    });
}

template <class Element>
void keep_parts_as(const CompressArgs& args, Worker& worker) {
    const KvBlocks blocks(args.kept);
    each_placed_row(args.kept, worker, [&](int64_t r, const int32_t* table) LLMD_LAMBDA {
        Element* to = kept_parts<Element>(blocks, table, args.kept.tokens[r]);
        write_vector(args.x + r * args.width, args.width, to);
        write_vector(args.gate + r * args.width, args.width, to + args.width);
    });
}

// Some elements of the vector that the row of a token completes.
template <class Element>
LLMD_INLINE Vec compressed(const CompressArgs& args, const KvBlocks& blocks, const int32_t* table,
                           int64_t token, int64_t element, int n) {
    const int64_t oldest = token + 1 - args.span;
    const int64_t own = token + 1 - args.stride;  // the first token that the vector stands for
    const int64_t first = oldest > 0 ? oldest : 0;
    const auto each = [&](auto&& f) LLMD_LAMBDA {
        for (int64_t t = first; t <= token; ++t) {
            const int64_t at = (t < own ? 0 : args.width - args.dim) + element;
            const Element* kept = kept_parts<Element>(blocks, table, t) + at;
            const Vec bias = load_n(args.bias + t % args.stride * args.width + at, n);
            f(load_n(kept, n), load_n(kept + args.width, n) + bias);
        }
    };
    Vec top = set1(-__builtin_inff());
    each([&](Vec, Vec gate) LLMD_LAMBDA { top = max(top, gate); });
    Vec total = set1(0.0F);
    Vec sum = set1(0.0F);
    each([&](Vec x, Vec gate) LLMD_LAMBDA {
        const Vec weight = exp(gate - top);
        total = total + weight;
        sum = fma(weight, x, sum);
    });
    return sum / total;
}

template <class Element>
void compress_as(const CompressArgs& args, Worker& worker) {
    const KvBlocks blocks(args.kept);
    each_placed_row(args.kept, worker, [&](int64_t r, const int32_t* table) LLMD_LAMBDA {
        const int64_t token = args.kept.tokens[r];
        const bool completes = (token + 1) % args.stride == 0;
        for (int64_t i = 0; i < args.dim; i += Vec::kLanes) {
            const int64_t left = args.dim - i;
            const int n = left < Vec::kLanes ? static_cast<int>(left) : Vec::kLanes;
            const Vec made = completes ? compressed<Element>(args, blocks, table, token, i, n) : set1(0.0F);
            store_n(args.out + r * args.dim + i, made, n);
        }
    });
}

void keep_parts(const CompressArgs& args, Worker& worker) {
    for_element(args.kept.dtype, [&](auto element) {
        if constexpr (!kCoded<decltype(element)>) keep_parts_as<decltype(element)>(args, worker);
    });
}

void compress(const CompressArgs& args, Worker& worker) {
    for_element(args.kept.dtype, [&](auto element) {
        if constexpr (!kCoded<decltype(element)>) compress_as<decltype(element)>(args, worker);
    });
}

}  // namespace llmd::LLMD_ISA
