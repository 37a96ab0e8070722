// Attention of a tile to a chunk of positions; attention.cu says what they are.
//
// Macros: those of attention_item.cuh.
#pragma once

#include "attention_item.cuh"

// What a lane keeps of a chunk: for each tile and each of the warp's blocks, scores of the positions 4t to 4t
// + 3. At [j] are the positions 4t + 2j and 4t + 2j + 1, first for pair lane / 4, then for pair lane / 4 + 8.
template <int tiles>
struct Scores {
    float at[tiles][OWN_BLOCKS][2][4];
};

// Multiply queries by the keys of `count` of the warp's blocks, from the one numbered `from` on.
template <int tiles, int count>
DEVICE void score_blocks(Scores<tiles>& scores, int from, const Keys (&keys)[count],
                         const Shared<tiles>& shared) {
    const int lane = lane_index();
#pragma unroll
    for (int s = 0; s < SLABS; ++s) {
        u32 b[count][2][2][2];
#pragma unroll
        for (int n = 0; n < count; ++n) {
            keys[n].words(b[n][0][0], b[n][0][1], s, 0);
            keys[n].words(b[n][1][0], b[n][1][1], s, 1);
        }
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                const Words4 words = shared.queries[tile][2 * s + step][lane];
                const u32 a[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
                for (int n = 0; n < count; ++n) {
                    multiply_tile(scores.at[tile][from + n][0], a, b[n][0][step]);
                    multiply_tile(scores.at[tile][from + n][1], a, b[n][1][step]);
                }
            }
        }
    }
}

// Cap scores, set those of positions that a pair does not see to -infinity, and leave the largest of each
// pair in shared memory.
template <int tiles>
DEVICE void mask_scores(Scores<tiles>& scores, const Args& args, Shared<tiles>& shared, int chunk) {
    const int lane = lane_index(), own_first = shared.item.position;
    const int first = chunk * CHUNK + warp_index() * OWN_BLOCKS * BLOCK_LEN;
    const int last = first + OWN_BLOCKS * BLOCK_LEN - 1;
    const bool all_seen = last <= last_seen(own_first, 0) &&
                          first > last_seen(own_first, shared.item.num_rows - 1) - args.window;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pair = tile * PAIRS + lane / 4 + 8 * half, own = last_seen(own_first, pair / HEADS);
            float largest = -infinity();
#pragma unroll
            for (int n = 0; n < OWN_BLOCKS; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float& score = scores.at[tile][n][i / 2][2 * half + i % 2];
                    if (SOFTCAP) score = tanhf(score * args.score_scale);
                    const int position = first + n * BLOCK_LEN + lane % 4 * 4 + i;
                    if (!all_seen && !(position <= own && position > own - args.window)) score = -infinity();
                    largest = fmaxf(largest, score);
                }
            }
            largest = fmaxf(largest, shuffle_xor(largest, 1));
            largest = fmaxf(largest, shuffle_xor(largest, 2));
            if (lane % 4 == 0) shared.largest[chunk % 2][warp_index()][pair] = largest;
        }
    }
}

// What the exponentials of a pair in this chunk are relative to; -infinity if it sees no position.
template <int tiles>
DEVICE float chunk_reference(const Args& args, const Shared<tiles>& shared, int chunk, int pair) {
    float largest = shared.largest[chunk % 2][0][pair];
    for (int warp = 1; warp < WARPS; ++warp) largest = fmaxf(largest, shared.largest[chunk % 2][warp][pair]);
    // Not `*`: the compiler must not combine it with a subtraction, or kernels would round differently.
    return fmaf(largest, args.exponent_scale, 0.0f);
}

// Leave exponentials as float16, and their sums for each pair and block, in shared memory.
template <int tiles>
DEVICE void weigh(const Scores<tiles>& scores, const Args& args, Shared<tiles>& shared, int chunk) {
    const int lane = lane_index();
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
        u32 words[OWN_BLOCKS][2][2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pair = tile * PAIRS + lane / 4 + 8 * half;
            const float reference = chunk_reference(args, shared, chunk, pair);
            const float finite = reference == -infinity() ? 0.0f : reference;
#pragma unroll
            for (int n = 0; n < OWN_BLOCKS; ++n) {
                float weights[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float score = scores.at[tile][n][i / 2][2 * half + i % 2];
                    weights[i] = fast_exp2(fmaf(score, args.exponent_scale, -finite));
                }
                words[n][0][half] = to_half2(weights[0], weights[1]);
                words[n][1][half] = to_half2(weights[2], weights[3]);
                float total = (weights[0] + weights[1]) + (weights[2] + weights[3]);
                total += shuffle_xor(total, 1);
                total += shuffle_xor(total, 2);
                if (lane % 4 == 0) shared.totals[warp_index() * OWN_BLOCKS + n][pair] = total;
            }
        }
#pragma unroll
        for (int n = 0; n < OWN_BLOCKS; ++n) {
            shared.weights[tile][warp_index() * OWN_BLOCKS + n][lane] =
                Words4{words[n][0][0], words[n][0][1], words[n][1][0], words[n][1][1]};
        }
    }
}

// The values of a chunk in GROUP units.
struct ChunkValues {
    Values<GROUP> of_block[CHUNK_BLOCKS];
};

DEVICE void load_values(ChunkValues& values, const Args& args, const Work& work, int ids, const i64* places,
                        int unit) {
#pragma unroll
    for (int n = 0; n < CHUNK_BLOCKS; ++n) {
#if SCATTERED
        values.of_block[n].load(work.head, places + n * BLOCK_LEN, unit);
#else
        values.of_block[n].load(work.head, block_at(args, ids, n), unit);
#endif
    }
}

DEVICE void load_keys(Keys& keys, const Args& args, const Work& work, int ids, const i64* places, int block) {
#if SCATTERED
    keys.load(work.head, places + block * BLOCK_LEN);
#else
    keys.load(work.head, block_at(args, ids, block));
#endif
}

// Add the sums of exponentials of a chunk to those so far, and find how the sums of values are added.
template <int tiles>
DEVICE void add_totals(const Args& args, Shared<tiles>& shared, int chunk) {
    warp_barrier();
    for (int pair = lane_index(); pair < tiles * PAIRS; pair += WARP) {
        float total = shared.totals[0][pair];
#pragma unroll
        for (int block = 1; block < CHUNK_BLOCKS; ++block) total += shared.totals[block][pair];
        const Total added = {chunk_reference(args, shared, chunk, pair), total};
        Total& so_far = shared.so_far[warp_index()][pair];
        const Factors by = factors_of(so_far.reference, added.reference);
        so_far = folded(so_far, added, by);
        shared.factors[warp_index()][pair] = by;
    }
    warp_barrier();
}

// Add exponentials times values of a chunk to GROUP units of the sums, from the one numbered `at` on.
template <int tiles>
DEVICE void add_values(State<tiles>& state, int at, const ChunkValues& values, const Shared<tiles>& shared) {
    u32 b[CHUNK_BLOCKS][GROUP][2][2];
#pragma unroll
    for (int n = 0; n < CHUNK_BLOCKS * GROUP * 2; ++n) {
        values.of_block[n / 2 / GROUP].words(b[n / 2 / GROUP][n / 2 % GROUP][n % 2], n / 2 % GROUP, n % 2);
    }
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
        float sums[GROUP][2][4];
#pragma unroll
        for (int n = 0; n < GROUP * 8; ++n) sums[n / 8][n / 4 % 2][n % 4] = 0.0f;
#pragma unroll
        for (int block = 0; block < CHUNK_BLOCKS; ++block) {
            const Words4 words = shared.weights[tile][block][lane_index()];
            const u32 a[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
            for (int n = 0; n < GROUP; ++n) {
#pragma unroll
                for (int j = 0; j < 2; ++j) multiply_tile(sums[n][j], a, b[block][n][j]);
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const Factors by = shared.factors[warp_index()][tile * PAIRS + lane_index() / 4 + 8 * half];
#pragma unroll
            for (int n = 0; n < GROUP * 4; ++n) {
                const int unit = n / 4, j = n / 2 % 2, i = 2 * half + n % 2;
                float& sum = state.sums[tile][at + unit][j][i];
                sum = folded(sum, sums[unit][j][i], by);
            }
        }
    }
}

// Attend to the positions of a chunk. `ids` are those of read_ids. For the first chunk of a tile, queries are
// read while keys and values are on their way.
template <int tiles>
DEVICE void attend_chunk(State<tiles>& state, const Args& args, const Work& work, Shared<tiles>& shared,
                         int chunk, int ids, bool is_first) {
    // As much as fits into registers is read at once, and values before they are needed.
    constexpr bool ALL_AT_ONCE = tiles == 1 && DIM <= 128, VALUES_LATE = DIM > 128;
    constexpr int KEYS_AT_ONCE = ALL_AT_ONCE ? OWN_BLOCKS : 1;
    const int unit = warp_index() * UNITS;
    const i64* places = SCATTERED ? shared.places[chunk % 2] : nullptr;
    if (SCATTERED) leave_places(args, shared, chunk, ids);
    Scores<tiles> scores;
    ChunkValues values;
#pragma unroll
    for (int n = 0; n < tiles * OWN_BLOCKS * 8; ++n) {
        scores.at[n / 8 / OWN_BLOCKS][n / 8 % OWN_BLOCKS][n / 4 % 2][n % 4] = 0.0f;
    }
#pragma unroll
    for (int n = 0; n < OWN_BLOCKS; n += KEYS_AT_ONCE) {
        Keys keys[KEYS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < KEYS_AT_ONCE; ++i) {
            load_keys(keys[i], args, work, ids, places, warp_index() * OWN_BLOCKS + n + i);
        }
        if (ALL_AT_ONCE) load_values(values, args, work, ids, places, unit);
        if (n == 0 && is_first) {
            load_queries(args, shared.item, shared);
            block_barrier();
        } else if (ALL_AT_ONCE) {
            warp_barrier();  // else the compiler would read values behind the products with keys
        }
        score_blocks(scores, n, keys, shared);
    }
    if (!ALL_AT_ONCE && !VALUES_LATE) load_values(values, args, work, ids, places, unit);
    mask_scores(scores, args, shared, chunk);
    block_barrier();
    weigh(scores, args, shared, chunk);
    block_barrier();
    add_totals<tiles>(args, shared, chunk);
#pragma unroll
    for (int n = 0; n < UNITS; n += GROUP) {
        if (n > 0 || VALUES_LATE) load_values(values, args, work, ids, places, unit + n);
        add_values(state, n, values, shared);
    }
}

// Four neighbouring elements, of which some may be beyond the head.
struct Four {
    float at[4];
};
DEVICE Four read_four(const float* head, int dim) {
#if VALUE_DIM % 4 == 0
    if (dim >= VALUE_DIM) return {};
    const Words4 words = *(const Words4*)(head + dim);
    return {float_of(words.x), float_of(words.y), float_of(words.z), float_of(words.w)};
#else
    Four four = {};
    for (int i = 0; i < 4; ++i) four.at[i] = dim + i < VALUE_DIM ? head[dim + i] : 0.0f;
    return four;
#endif
}
DEVICE void write_four(float* head, int dim, const Four& four) {
#if VALUE_DIM % 4 == 0
    const Words4 words = {bits_of(four.at[0]), bits_of(four.at[1]), bits_of(four.at[2]), bits_of(four.at[3])};
    if (dim < VALUE_DIM) *(Words4*)(head + dim) = words;
#else
    for (int i = 0; i < 4; ++i) {
        if (dim + i < VALUE_DIM) head[dim + i] = four.at[i];
    }
#endif
}

// What a lane has of a unit for a pair, and the first of these dimensions.
DEVICE Four sums_of(const float (&unit)[2][4], int half) {
    return {unit[0][2 * half], unit[1][2 * half], unit[0][2 * half + 1], unit[1][2 * half + 1]};
}
DEVICE int first_dim(int n) { return (warp_index() * UNITS + n) * 16 + lane_index() % 4 * 4; }

// Add the sums to those in `out`, and clear them. The first sums replace what is there; with the last ones,
// the weighted means are written. Each thread reads only what it has written itself.
template <int tiles>
DEVICE void add_to_out(State<tiles>& state, const Args& args, Shared<tiles>& shared, bool is_first,
                       bool is_last) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pair = tile * PAIRS + lane_index() / 4 + 8 * half;
            Total& in_out = shared.in_out[warp_index()][pair];
            Total total = shared.so_far[warp_index()][pair];
            Factors by = {0.0f, 1.0f};
            if (!is_first) {
                by = factors_of(in_out.reference, total.reference);
                total = folded(in_out, total, by);
            }
            warp_barrier();
            if (!is_last && lane_index() % 4 == 0) in_out = total;
            if (!exists(shared.item, pair)) continue;
            const float factor = is_last ? last_factor(args, shared.item, pair, total) : 1.0f;
            if (SUMS && is_last && lane_index() % 4 == 0 && warp_index() == 0) {
                leave_log_sum(args, shared.item, pair, total);
            }
            float* head = args.out + place_of(args, shared.item, pair) * VALUE_DIM;
#pragma unroll
            for (int n = 0; n < UNITS; ++n) {
                Four sums = sums_of(state.sums[tile][n], half);
                const Four before = is_first ? sums : read_four(head, first_dim(n));
                for (int i = 0; i < 4; ++i) {
                    if (!is_first) sums.at[i] = folded(before.at[i], sums.at[i], by);
                    sums.at[i] *= factor;
                }
                write_four(head, first_dim(n), sums);
            }
        }
    }
    warp_barrier();
    clear(state, shared);
}
