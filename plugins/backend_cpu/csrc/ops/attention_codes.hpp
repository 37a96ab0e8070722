// Scores and sums of a piece over int8 and int4 keys and values: integer products of their codes with queries
// and with weights, which are rounded to int16.
//
//   queries   of each head: q * scale = words * (largest |q * scale| / 2^14)
//   weights   of each query, chunk and group of 32 elements: exponential * scale of the value
//             = words * (largest of them / 2^14)
// Both are off by 2^-15 of the largest at most, where codes are off by 2^-8 and 2^-4. Integer sums are exact.

#pragma once

#include "ops/attention_piece.hpp"
#include "ops/rotate.hpp"

namespace llmd::LLMD_ISA {

constexpr float kLargestWord = 16384.0F;  // a power of two, so that dividing by it rounds nothing

// Codes of 16 tokens, elements d and d + 1 of each: `kOdd` of the pairs from d on (even) or d + 2.
template <class Element, int kOdd>
LLMD_INLINE CodePairs load_keys(const uint8_t* keys, int64_t d) {
    if constexpr (std::is_same_v<Element, Int8>)
        return load_codes(reinterpret_cast<const int8_t*>(keys) + (d + 2 * kOdd) * kBlockLen);
    else
        return kOdd ? load_high_codes(keys + d / 2 * kBlockLen) : load_low_codes(keys + d / 2 * kBlockLen);
}

// Codes of 16 elements from d on, of both tokens of a pair.
template <class Element>
LLMD_INLINE CodePairs load_values(const uint8_t* values, int64_t pair, int64_t dim, int64_t d) {
    if constexpr (std::is_same_v<Element, Int8>)
        return load_codes(reinterpret_cast<const int8_t*>(values) + 2 * (pair * dim + d));
    const uint8_t* record = values + pair * dim + d / 32 * 32;
    return d % 32 == 0 ? load_low_codes(record) : load_high_codes(record);
}

// Rounds [count] numbers, a multiple of a vector, to words with one scale, which is returned.
LLMD_INLINE float round_to_words(const float* x, int64_t count, float top, int16_t* words) {
    const Vec factor = set1(top > 0.0F ? kLargestWord / top : 0.0F);
    for (int64_t i = 0; i < count; i += Vec::kLanes) store_int16(words + i, load(x + i) * factor);
    return top / kLargestWord;
}

// A query [dim], which is overwritten, as words; returns their scale.
LLMD_INLINE float round_query(float* q, int64_t dim, float scale, int16_t* words) {
    Vec top = set1(0.0F);
    Vec total = set1(0.0F);
    for (int64_t i = 0; i < dim; i += Vec::kLanes) {
        const Vec x = load(q + i) * set1(scale);
        store(q + i, x);
        top = max(top, abs(x));
        total = total + x;
    }
    // What is not finite has no words: it makes the scale NaN, and with it every score.
    return round_to_words(q, dim, largest(top), words) + 0.0F * sum(total);
}

// Sums of the words of each group of 32 elements.
LLMD_INLINE void sum_groups(const int16_t* words, int64_t dim, float* sums) {
    for (int64_t first = 0; first < dim; first += kKvGroup) {
        int32_t total = 0;
        for (int64_t d = first; d < first + kKvGroup && d < dim; ++d) total += words[d];
        sums[first / kKvGroup] = static_cast<float>(total);
    }
}

// A query in words: [dim] words, room for as many, which begins with the sums of its groups.
LLMD_INLINE const float* sums_of(const int16_t* words, int64_t dim) {
    return reinterpret_cast<const float*>(words + dim);
}

// Scores of kBlocks blocks: words [kQueries][2 * dim], factors [kQueries], scores [kQueries][kChunk].
template <class Element, int kQueries, int kBlocks>
void score_code_blocks(const AttentionArgs& args, const KvLayout& layout, const KvChunk& chunk, int64_t b,
                       const int16_t* words, const float* factors, float* scores) {
    constexpr int kSums = kQueries * kBlocks;
    const int64_t dim = layout.padded_dim();
    Vec totals[kSums * kVecsPerBlock];
    unroll<kSums * kVecsPerBlock>([&](auto i) LLMD_LAMBDA { totals[i] = set1(0.0F); });
    for (int64_t first = 0; first < dim; first += kKvGroup) {
        Products sums[kSums];
        unroll<kSums>([&](auto i) LLMD_LAMBDA { sums[i] = no_products(); });
        const int64_t last = first + kKvGroup < dim ? first + kKvGroup : dim;
        for (int64_t d = first; d < last; d += 4) {
            unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
                __builtin_prefetch(chunk.after_keys(b + i) + layout.scales_at() / dim * d);
            });
            unroll<2>([&](auto odd) LLMD_LAMBDA {
                CodePairs codes[kBlocks];
                unroll<kBlocks>(
                    [&](auto i) LLMD_LAMBDA { codes[i] = load_keys<Element, odd>(chunk.keys(b + i), d); });
                unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                    const Pair pair = load_pair(words + m * 2 * dim + d + 2 * odd);
                    unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
                        sums[m * kBlocks + i] = add_products(sums[m * kBlocks + i], codes[i], pair);
                    });
                });
            });
        }
        unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
            const auto* scales = reinterpret_cast<const F16*>(chunk.keys(b + i) + layout.scales_at());
            unroll<kVecsPerBlock>([&](auto part) LLMD_LAMBDA {
                const Vec scale = load(scales + first / kKvGroup * kBlockLen + part * Vec::kLanes);
                unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                    constexpr int kAt = (m * kBlocks + i) * kVecsPerBlock + part;
                    totals[kAt] = fma(to_float<part>(sums[m * kBlocks + i]), scale, totals[kAt]);
                });
                if constexpr (kShifted<Element>) {
                    const F16* leasts = scales + layout.groups() * kBlockLen;
                    const Vec least = load(leasts + first / kKvGroup * kBlockLen + part * Vec::kLanes);
                    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                        constexpr int kAt = (m * kBlocks + i) * kVecsPerBlock + part;
                        const Vec sum = set1(sums_of(words + m * 2 * dim, dim)[first / kKvGroup]);
                        totals[kAt] = fma(sum, least, totals[kAt]);
                    });
                }
            });
        });
    }
    unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
        __builtin_prefetch(chunk.values(b + i) + layout.scales_at());
        __builtin_prefetch(chunk.after_keys(b + i) + layout.scales_at());
    });
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kBlocks * kVecsPerBlock>([&](auto i) LLMD_LAMBDA {
            const Vec score = totals[m * kBlocks * kVecsPerBlock + i] * set1(factors[m]);
            store(scores + m * kChunk + b * kBlockLen + i * Vec::kLanes, finish_score(args, score));
        });
    });
}

template <class Element>
void score_codes(const AttentionArgs& args, const KvLayout& layout, const KvChunk& chunk,
                 const int16_t* words, const float* factors, int count, float* scores) {
    each_run<kProductQueries>(count, [&](auto size, int first) LLMD_LAMBDA {
        constexpr int kQueries = decltype(size){};
        constexpr int kBlocks = together(kProductTile, kQueries, 8);
        const int16_t* of = words + first * 2 * layout.padded_dim();
        float* to = scores + first * kChunk;
        for (int64_t b = 0; b < chunk.count; b += kBlocks)
            score_code_blocks<Element, kQueries, kBlocks>(args, layout, chunk, b, of, factors + first, to);
    });
}

// How the integer sums of a query and a group of values become numbers: sum * factor + base.
struct Line {
    float factor;
    float base;
};

// Exponentials [kChunk] of a query times the scales of one group of values, as words.
template <class Element>
Line round_weights(const KvLayout& layout, const KvChunk& chunk, int64_t group, const float* exponentials,
                   float* weights, int16_t* words) {
    Vec top = set1(0.0F);
    Vec base = set1(0.0F);
    for (int64_t b = 0; b < chunk.count; ++b) {
        const auto* scales = reinterpret_cast<const F16*>(chunk.values(b) + layout.scales_at());
        unroll<kVecsPerBlock>([&](auto part) LLMD_LAMBDA {
            const int64_t t = b * kBlockLen + part * Vec::kLanes;
            const Vec e = load(exponentials + t);
            const Vec scaled = e * load(scales + group * kBlockLen + part * Vec::kLanes);
            // The scales of tokens that are not seen may be anything, even NaN.
            const Vec weight = if_less(set1(0.0F), e, scaled, set1(0.0F));
            store(weights + t, weight);
            top = max(top, weight);
            if constexpr (kShifted<Element>) {
                const F16* leasts = scales + (layout.groups() + group) * kBlockLen;
                const Vec least = e * load(leasts + part * Vec::kLanes);
                base = base + if_less(set1(0.0F), e, least, set1(0.0F));
            }
        });
    }
    return {round_to_words(weights, chunk.count * kBlockLen, largest(top), words), sum(base)};
}

// Sums of kSlices times 16 elements from d on over all tokens of a chunk: words [kQueries][kChunk], lines
// [kQueries], outputs [kQueries][dim].
template <class Element, int kQueries, int kSlices>
void add_code_values(const KvChunk& chunk, const int16_t* words, const Line* lines, float* outputs,
                     int64_t dim, int64_t d) {
    Products sums[kQueries * kSlices];
    unroll<kQueries * kSlices>([&](auto i) LLMD_LAMBDA { sums[i] = no_products(); });
    for (int64_t b = 0; b < chunk.count; ++b) {
        const uint8_t* values = chunk.values(b);
        const uint8_t* next = chunk.after_values(b);
        for (int64_t pair = 0; pair < kBlockLen / 2; ++pair) {
            CodePairs codes[kSlices];
            unroll<kSlices>([&](auto i) LLMD_LAMBDA {
                codes[i] = load_values<Element>(values, pair, dim, d + i * kBlockLen);
            });
            __builtin_prefetch(next + (std::is_same_v<Element, Int8> ? 2 : 1) * (pair * dim + d));
            unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                const Pair two = load_pair(words + m * kChunk + b * kBlockLen + 2 * pair);
                unroll<kSlices>([&](auto i) LLMD_LAMBDA {
                    sums[m * kSlices + i] = add_products(sums[m * kSlices + i], codes[i], two);
                });
            });
        }
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kSlices>([&](auto i) LLMD_LAMBDA {
            unroll<kVecsPerBlock>([&](auto part) LLMD_LAMBDA {
                const Vec value =
                    fma(to_float<part>(sums[m * kSlices + i]), set1(lines[m].factor), set1(lines[m].base));
                store(outputs + m * dim + d + i * kBlockLen + part * Vec::kLanes, value);
            });
        });
    });
}

// Exponentials [count][kChunk], outputs [count][dim], words [count][kChunk], weights [kChunk].
template <class Element>
void add_codes(const KvLayout& layout, const KvChunk& chunk, const float* exponentials, int count,
               float* outputs, int16_t* words, float* weights) {
    const int64_t dim = layout.padded_dim();
    Line lines[kPieceQueries];
    for (int64_t first = 0; first < dim; first += kKvGroup) {
        for (int m = 0; m < count; ++m) {
            lines[m] = round_weights<Element>(layout, chunk, first / kKvGroup, exponentials + m * kChunk,
                                              weights, words + m * kChunk);
        }
        const int64_t last = first + kKvGroup < dim ? first + kKvGroup : dim;
        each_run<kProductQueries>(count, [&](auto size, int query) LLMD_LAMBDA {
            constexpr int kQueries = decltype(size){};
            constexpr int kSlices = together(kProductTile, kQueries, 2);
            const int16_t* of = words + query * kChunk;
            float* to = outputs + query * dim;
            int64_t d = first;
            for (; d + kSlices * kBlockLen <= last; d += kSlices * kBlockLen)
                add_code_values<Element, kQueries, kSlices>(chunk, of, lines + query, to, dim, d);
            if constexpr (kSlices > 1 && std::is_same_v<Element, Int8>) {
                if (d < last) add_code_values<Element, kQueries, 1>(chunk, of, lines + query, to, dim, d);
            }
        });
    }
}

}  // namespace llmd::LLMD_ISA
