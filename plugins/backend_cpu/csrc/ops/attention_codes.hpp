// Scores and sums of a piece over int8 and int4 keys and values: integer products of their codes with
// queries and with attention weights, which are rounded to int16.
//
//   queries   of each head: q * scale = words * (largest |q * scale| / 2^14)
//   weights   of each query, partition and group of 32 elements: exponential * scale of the value
//             = words * (largest of them / 2^14)
//
// The rounding errors are at most 2^-15 of the largest; those of the codes are 2^-8 and 2^-5. Integer sums
// are exact.

#pragma once

#include "ops/attention_piece.hpp"
#include "ops/rotate.hpp"

namespace llmd::LLMD_ISA {

constexpr float kLargestWord = 16384.0F;  // a power of two, so that the division is exact

// Reads codes of half a group, in the order of its elements or pairs, as levels.
template <class Element>
struct CodeReader;

template <>
struct CodeReader<Int8> {
    template <int kDistance, bool kSecond>
    LLMD_INLINE_MEMBER void begin(const uint8_t*) {}
    // Elements d and d + 1 of 16 tokens (`kOdd` 0), or elements d + 2 and d + 3 (`kOdd` 1).
    template <int kOdd>
    LLMD_INLINE_MEMBER CodePairs keys(const KvBook&, const uint8_t* half, int64_t d) {
        return load_codes(reinterpret_cast<const int8_t*>(half) + (d + 2 * kOdd) * kBlockLen);
    }
    // 16 elements, half kSecond of a group, of both tokens of a pair; the group begins at element `at`.
    template <int kSecond>
    LLMD_INLINE_MEMBER CodePairs values(const KvBook&, const uint8_t* half, int64_t at) {
        return load_codes(reinterpret_cast<const int8_t*>(half) + 2 * (at + kSecond * kBlockLen));
    }
};

template <>
struct CodeReader<Int4> {
    LowBits bits;

    // Begins at the first or the second half of a group.
    template <int kDistance, bool kSecond>
    LLMD_INLINE_MEMBER void begin(const uint8_t* bits_of_group) {
        bits = load_low_bits<kDistance, kSecond>(bits_of_group);
    }
    template <int kOdd>
    LLMD_INLINE_MEMBER CodePairs keys(const KvBook& book, const uint8_t* half, int64_t d) {
        const uint8_t* halves = half + d / 2 * kBlockLen;
        const CodePairs codes = kOdd ? look_up_high(book, halves, bits) : look_up_low(book, halves, bits);
        bits = next(bits);
        return codes;
    }
    template <int kSecond>
    LLMD_INLINE_MEMBER CodePairs values(const KvBook& book, const uint8_t* half, int64_t at) {
        const CodePairs codes =
            kSecond ? look_up_high(book, half + at, bits) : look_up_low(book, half + at, bits);
        bits = next(bits);
        return codes;
    }
};

// How many blocks of keys are read together: the lowest bits of int4 need registers too.
template <class Element>
constexpr int kMostBlocks = std::is_same_v<Element, Int8> ? 8 : 4;

// Bytes of the codes of one element in a block.
template <class Element>
constexpr int64_t kBytesOfColumn = std::is_same_v<Element, Int8> ? kBlockLen : kBlockLen / 2;

// Scales of a vector of tokens of a block, beginning with token t.
template <class Element>
LLMD_INLINE Vec load_scales(const KvLayout& layout, const uint8_t* half, int64_t group, int t) {
    if constexpr (std::is_same_v<Element, Int8>) {
        return load(reinterpret_cast<const F16*>(half + layout.scales_at()) + group * kBlockLen + t);
    } else {
        return load_byte_scales(half + layout.scales_at() + group * kBitsOfGroup + kByteScalesAt + t);
    }
}

// Rounds [count] numbers to words with a common scale, which is returned. `count` is a multiple of a
// vector.
LLMD_INLINE float round_to_words(const float* x, int64_t count, float top, int16_t* words) {
    const Vec factor = set1(top > 0.0F ? kLargestWord / top : 0.0F);
    for (int64_t i = 0; i < count; i += Vec::kLanes) store_int16(words + i, load(x + i) * factor);
    return top / kLargestWord;
}

// Rounds a query [dim] to words, overwrites the query, and returns the scale of the words.
LLMD_INLINE float round_query(float* q, int64_t dim, float scale, int16_t* words) {
    Vec top = set1(0.0F);
    Vec total = set1(0.0F);
    for (int64_t i = 0; i < dim; i += Vec::kLanes) {
        const Vec x = load(q + i) * set1(scale);
        store(q + i, x);
        top = max(top, abs(x));
        total = total + x;
    }
    // Numbers that are not finite cannot be words: they make the scale NaN, and with it every score.
    return round_to_words(q, dim, largest(top), words) + 0.0F * sum(total);
}

// Scores of kBlocks blocks: words [kQueries][2 * dim], factors [kQueries], scores [kQueries][kPartition].
template <class Element, int kQueries, int kBlocks>
void score_code_blocks(const AttentionArgs& args, const KvLayout& layout, const KvPartition& partition,
                       int64_t b, const int16_t* words, const float* factors, float* scores) {
    constexpr int kSums = kQueries * kBlocks;
    const int64_t dim = layout.padded_dim();
    const int64_t scales_at = layout.scales_at();
    const KvBook book = load_kv_book();
    Vec totals[kSums * kVecsPerBlock];
    unroll<kSums * kVecsPerBlock>([&](auto i) LLMD_LAMBDA { totals[i] = set1(0.0F); });
    for (int64_t first = 0; first < dim; first += kKvGroup) {
        Products sums[kSums];
        unroll<kSums>([&](auto i) LLMD_LAMBDA { sums[i] = no_products(); });
        const int64_t last = first + kKvGroup < dim ? first + kKvGroup : dim;
        const int64_t bits_at = scales_at + first / kKvGroup * kBitsOfGroup;
        unroll<2>([&](auto second) LLMD_LAMBDA {
            const int64_t from = first + second * kBlockLen;
            if (from >= last) return;
            CodeReader<Element> readers[kBlocks];
            unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
                readers[i].template begin<1, second>(partition.keys(b + i) + bits_at);
            });
            for (int64_t d = from; d < from + kBlockLen; d += 4) {
                unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
                    __builtin_prefetch(partition.after_keys(b + i) + kBytesOfColumn<Element> * d);
                });
                unroll<2>([&](auto odd) LLMD_LAMBDA {
                    CodePairs codes[kBlocks];
                    unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
                        codes[i] = readers[i].template keys<odd>(book, partition.keys(b + i), d);
                    });
                    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                        const Pair pair = load_pair(words + m * 2 * dim + d + 2 * odd);
                        unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
                            sums[m * kBlocks + i] = add_products(sums[m * kBlocks + i], codes[i], pair);
                        });
                    });
                });
            }
        });
        unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
            unroll<kVecsPerBlock>([&](auto part) LLMD_LAMBDA {
                if constexpr (part == 0 && std::is_same_v<Element, Int4>)
                    __builtin_prefetch(partition.after_keys(b + i) + bits_at);
                const Vec scale =
                    load_scales<Element>(layout, partition.keys(b + i), first / kKvGroup, part * Vec::kLanes);
                unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                    constexpr int kAt = (m * kBlocks + i) * kVecsPerBlock + part;
                    totals[kAt] = fma(to_float<part>(sums[m * kBlocks + i]), scale, totals[kAt]);
                });
            });
        });
    }
    unroll<kBlocks>([&](auto i) LLMD_LAMBDA {
        __builtin_prefetch(partition.values(b + i) + scales_at);
        __builtin_prefetch(partition.after_keys(b + i) + scales_at);
    });
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kBlocks * kVecsPerBlock>([&](auto i) LLMD_LAMBDA {
            const Vec score = totals[m * kBlocks * kVecsPerBlock + i] * set1(factors[m]);
            store(scores + m * kPartition + b * kBlockLen + i * Vec::kLanes, finish_score(args, score));
        });
    });
}

template <class Element>
void score_codes(const AttentionArgs& args, const KvLayout& layout, const KvPartition& partition,
                 const int16_t* words, const float* factors, int count, float* scores) {
    each_run<kProductQueries>(count, [&](auto size, int first) LLMD_LAMBDA {
        constexpr int kQueries = decltype(size){};
        constexpr int kBlocks = together(kProductTile, kQueries, kMostBlocks<Element>);
        const int16_t* of = words + first * 2 * layout.padded_dim();
        float* to = scores + first * kPartition;
        for (int64_t b = 0; b < partition.count; b += kBlocks)
            score_code_blocks<Element, kQueries, kBlocks>(args, layout, partition, b, of, factors + first,
                                                          to);
    });
}

// Exponentials [kPartition] of a query times the scales of one group of values, as words. Returns the
// factor for sums of products with codes.
template <class Element>
float round_weights(const KvLayout& layout, const KvPartition& partition, int64_t group,
                    const float* exponentials, float* weights, int16_t* words) {
    Vec top = set1(0.0F);
    for (int64_t b = 0; b < partition.count; ++b) {
        unroll<kVecsPerBlock>([&](auto part) LLMD_LAMBDA {
            const int64_t t = b * kBlockLen + part * Vec::kLanes;
            const Vec e = load(exponentials + t);
            const Vec scaled =
                e * load_scales<Element>(layout, partition.values(b), group, part * Vec::kLanes);
            // The scales of tokens that the query does not attend to may be anything, even NaN.
            const Vec weight = if_less(set1(0.0F), e, scaled, set1(0.0F));
            store(weights + t, weight);
            top = max(top, abs(weight));
        });
    }
    return round_to_words(weights, partition.count * kBlockLen, largest(top), words) * kCodeScale<Element>;
}

// Sums kSlices times 16 elements over all tokens of a partition, beginning with half kFrom of the group
// that starts at element `first`: words [kQueries][kPartition], factors [kQueries], outputs
// [kQueries][dim].
template <class Element, int kQueries, int kFrom, int kSlices>
void add_code_values(const KvLayout& layout, const KvPartition& partition, const int16_t* words,
                     const float* factors, float* outputs, int64_t first) {
    const int64_t dim = layout.padded_dim();
    const int64_t bits_at = layout.scales_at() + first / kKvGroup * kBitsOfGroup;
    const KvBook book = load_kv_book();
    Products sums[kQueries * kSlices];
    unroll<kQueries * kSlices>([&](auto i) LLMD_LAMBDA { sums[i] = no_products(); });
    for (int64_t b = 0; b < partition.count; ++b) {
        const uint8_t* values = partition.values(b);
        const uint8_t* next = partition.after_values(b);
        CodeReader<Element> readers[kSlices];
        unroll<kSlices>([&](auto i)
                            LLMD_LAMBDA { readers[i].template begin<2, kFrom + i != 0>(values + bits_at); });
        if constexpr (std::is_same_v<Element, Int4>) __builtin_prefetch(next + bits_at);
        for (int64_t pair = 0; pair < kBlockLen / 2; ++pair) {
            CodePairs codes[kSlices];
            unroll<kSlices>([&](auto i) LLMD_LAMBDA {
                codes[i] = readers[i].template values<kFrom + i>(book, values, pair * dim + first);
            });
            __builtin_prefetch(next + (std::is_same_v<Element, Int8> ? 2 : 1) * (pair * dim + first));
            unroll<kQueries>([&](auto m) LLMD_LAMBDA {
                const Pair two = load_pair(words + m * kPartition + b * kBlockLen + 2 * pair);
                unroll<kSlices>([&](auto i) LLMD_LAMBDA {
                    sums[m * kSlices + i] = add_products(sums[m * kSlices + i], codes[i], two);
                });
            });
        }
    }
    unroll<kQueries>([&](auto m) LLMD_LAMBDA {
        unroll<kSlices>([&](auto i) LLMD_LAMBDA {
            unroll<kVecsPerBlock>([&](auto part) LLMD_LAMBDA {
                const Vec value = to_float<part>(sums[m * kSlices + i]) * set1(factors[m]);
                store(outputs + m * dim + first + (kFrom + i) * kBlockLen + part * Vec::kLanes, value);
            });
        });
    });
}

// Exponentials [count][kPartition], outputs [count][dim], words [count][kPartition], weights [kPartition].
template <class Element>
void add_codes(const KvLayout& layout, const KvPartition& partition, const float* exponentials, int count,
               float* outputs, int16_t* words, float* weights) {
    const int64_t dim = layout.padded_dim();
    float factors[kPieceQueries];
    for (int64_t first = 0; first < dim; first += kKvGroup) {
        for (int m = 0; m < count; ++m) {
            factors[m] =
                round_weights<Element>(layout, partition, first / kKvGroup, exponentials + m * kPartition,
                                       weights, words + m * kPartition);
        }
        const int64_t last = first + kKvGroup < dim ? first + kKvGroup : dim;
        each_run<kProductQueries>(count, [&](auto size, int query) LLMD_LAMBDA {
            constexpr int kQueries = decltype(size){};
            constexpr int kSlices = together(kProductTile, kQueries, 2);
            const int16_t* of = words + query * kPartition;
            float* to = outputs + query * dim;
            const auto add = [&](auto from, auto slices) LLMD_LAMBDA {
                add_code_values<Element, kQueries, from, slices>(layout, partition, of, factors + query, to,
                                                                 first);
            };
            const bool whole = last - first == kKvGroup;
            if constexpr (kSlices == 2) {
                if (whole) return add(Index<0>{}, Index<2>{});
            }
            if constexpr (kSlices == 1 || std::is_same_v<Element, Int8>) add(Index<0>{}, Index<1>{});
            if constexpr (kSlices == 1) {
                if (whole) add(Index<1>{}, Index<1>{});
            }
        });
    }
}

}  // namespace llmd::LLMD_ISA
