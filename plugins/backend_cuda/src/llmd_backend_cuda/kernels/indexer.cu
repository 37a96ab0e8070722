// indexer: the positions that attention is limited to
//
//   q             [rows, HEADS, HEAD_DIM]  f32      out  [rows, top_k]  f32: positions, ascending, then -1
//   head_weights  [rows, HEADS]  f32                k    index keys in the KV memory (kv_layout.cuh), stored
//   before score   sum over heads of head_weights[h] * max(q[h] . k, 0), in float32 chosen  the top_k
//   positions with the highest scores, of equal ones the later score_positions    a block has a row. Tensor
//   cores multiply 16 heads by the keys of a warp's blocks. A
//           query is scaled by a power of two and split into two float16 whose sum has 22 bits; index keys in
//           float32 are split when they are stored. The product of what is left of both is left out
//   choose_positions   a block has a row. It counts scores by 11, 11 and 10 bits of their order, the highest
//           first, until it knows the lowest score that is chosen; then each warp writes the chosen positions
//           of its range
//   work    the host launches both kernels for some rows at a time, so that `scores` is small. A row that
//           sees no more than top_k positions needs no scores
//   stride  with a STRIDE, positions are those of vectors that stand for several tokens
//   exact   a score depends on the row and the position only, and so does the choice
//   speed   scores: bound by tensor cores and the L2 cache for many rows, by reading keys for few. Choice:
//           reads the scores of a row five times, with one block
//   from    DeepSeek-AI 2025, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models"
//
// Macros: those of kv_layout.cuh, with HEAD_DIM of at most 256; HEADS, index heads.
#include "float_order.cuh"
#include "kv_layout.cuh"
#include "prefix.cuh"

#ifndef HEADS
#define HEADS 64
#endif

constexpr int WARPS = 4;
constexpr int THREADS = WARPS * WARP;
constexpr int TILE_HEADS = 16;  // rows of a multiply_tile
constexpr int HEAD_TILES = (HEADS + TILE_HEADS - 1) / TILE_HEADS;
constexpr int STEPS = DIM / 16;  // of a product with keys
constexpr bool SPLIT_KEYS = KV_DTYPE == KV_SPLIT;
constexpr int OWN_BLOCKS = SPLIT_KEYS || DIM > 128 ? 1 : 2;  // whose keys a warp has in registers

constexpr int CHOOSERS = 1024;  // threads of choose_positions
constexpr int DIGITS = 2048;

struct Args {
    Step step;
    KVMemory memory;
    const float* q;
    const float* head_weights;
    float* scores;  // [rows of the launch, score_stride]
    float* out;
    i32 first_row;  // of the launch
    i32 top_k;
    i32 score_stride;
};

// The queries of a row, and the weights of its heads.
struct Queries {
    Words4 words[2][HEAD_TILES][STEPS][WARP];  // `a` words: of what float16 holds, and of what is left
    float weights[HEAD_TILES * TILE_HEADS];    // 0 behind the last head
};

// The power of two by which a query is divided, so that its largest element is at least 1 and below 2.
DEVICE float scale_of(float largest) {
    const u32 exponent = bits_of(largest) >> 23;
    return float_of((exponent < 1 ? 1 : exponent > 253 ? 253 : exponent) << 23);
}

// Write an element to where multiply_tile wants it.
DEVICE void put(Words4 (&words)[STEPS][WARP], int head, int dim, u16 half) {
    const int step = dim / SLAB * 2 + dim % 8 / 4, lane = head % 8 * 4 + dim % SLAB / 8;
    const int place = (dim % 4 / 2 * 2 + head / 8) * 2 + dim % 2;
    ((u16*)&words[step][lane])[place] = half;
}

// Split the queries of a row, a head in each warp.
DEVICE void split_queries(const Args& args, int row, Queries& queries) {
    for (int head = warp_index(); head < HEAD_TILES * TILE_HEADS; head += WARPS) {
        const i64 number = (i64)row * HEADS + head;
        float query[SLABS], largest = 0.0f;
#pragma unroll
        for (int s = 0; s < SLABS; ++s) {
            const int dim = s * SLAB + lane_index();
            query[s] = head < HEADS && dim < HEAD_DIM ? args.q[number * HEAD_DIM + dim] : 0.0f;
            largest = fmaxf(largest, fabsf(query[s]));
        }
        const float scale = scale_of(warp_max(largest)), inverse = 1.0f / scale;
#pragma unroll
        for (int s = 0; s < SLABS; ++s) {
            const int dim = s * SLAB + lane_index(), tile = head / TILE_HEADS;
            const float x = query[s] * inverse;
            const u16 half = to_half(x);
            put(queries.words[0][tile], head % TILE_HEADS, dim, half);
            put(queries.words[1][tile], head % TILE_HEADS, dim, to_half(x - from_half(half)));
        }
        if (lane_index() == 0) {
            queries.weights[head] = head < HEADS ? args.head_weights[number] * scale : 0.0f;
        }
    }
}

// The keys of a warp's blocks, of the blocks `first` and after of a sequence of which a row sees `seen` keys.
struct OwnKeys {
    Keys keys[OWN_BLOCKS], rest[SPLIT_KEYS ? OWN_BLOCKS : 1];

    DEVICE void load(const KVMemory& memory, const i32* table, int first, int seen) {
#if SCATTERED
#pragma unroll
        for (int n = 0; n < OWN_BLOCKS; ++n) {
            i64 at[2];
            for (int j = 0; j < 2; ++j) {
                const int number = (first + n) * BLOCK_LEN + key_position(lane_index() / 4, j);
                at[j] = vector_at(memory, table, min(number, seen - 1));
            }
            keys[n].load(head_of(memory, 0), at[0], at[1]);
            if (SPLIT_KEYS) rest[n].load(head_of(memory, 0) + REST_AT, at[0], at[1]);
        }
#else
        const int last = (seen - 1) / BLOCK_LEN;
#pragma unroll
        for (int n = 0; n < OWN_BLOCKS; ++n) {
            const i64 at = table[min(first + n, last)] * memory.block_bytes;
            keys[n].load(head_of(memory, 0), at);
            if (SPLIT_KEYS) rest[n].load(head_of(memory, 0) + REST_AT, at);
        }
#endif
    }
};

// Products of 16 heads with keys: those of a lane are of the heads lane / 4 and lane / 4 + 8 and the
// positions 4t to 4t + 3 of each block, as in attention.
struct Products {
    float at[OWN_BLOCKS][2][4];
};

DEVICE void add_products(Products& products, const Words4& words, const Keys (&keys)[OWN_BLOCKS], int s,
                         int step) {
    const u32 a[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int n = 0; n < OWN_BLOCKS; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            u32 b[2][2];
            keys[n].words(b[0], b[1], s, j);
            multiply_tile(products.at[n][j], a, b[step]);
        }
    }
}

DEVICE void multiply_heads(Products& products, const Queries& queries, int tile, const OwnKeys& own) {
    products = {};
#pragma unroll
    for (int n = 0; n < STEPS; ++n) {
        const Words4& whole = queries.words[0][tile][n][lane_index()];
        add_products(products, whole, own.keys, n / 2, n % 2);
        add_products(products, queries.words[1][tile][n][lane_index()], own.keys, n / 2, n % 2);
#if KV_DTYPE == KV_SPLIT
        add_products(products, whole, own.rest, n / 2, n % 2);
#endif
    }
}

// Write the scores of the blocks whose keys a warp has.
DEVICE void score_blocks(const Queries& queries, const OwnKeys& own, float* scores, int first, int last) {
    float totals[OWN_BLOCKS][4] = {};
#pragma unroll 1
    for (int tile = 0; tile < HEAD_TILES; ++tile) {
        Products products;
        multiply_heads(products, queries, tile, own);
        const float* weights = queries.weights + tile * TILE_HEADS + lane_index() / 4;
#pragma unroll
        for (int i = 0; i < OWN_BLOCKS * 4; ++i) {
            const float (&of)[4] = products.at[i / 4][i % 4 / 2];
            float& total = totals[i / 4][i % 4];
            total = fmaf(weights[0], fmaxf(of[i % 2], 0.0f), total);
            total = fmaf(weights[8], fmaxf(of[2 + i % 2], 0.0f), total);
        }
    }
#pragma unroll
    for (int n = 0; n < OWN_BLOCKS; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            for (int lanes = 4; lanes < WARP; lanes *= 2) totals[n][i] += shuffle_xor(totals[n][i], lanes);
        }
        if (lane_index() >= 4 || first + n > last) continue;
        const Words4 words = {bits_of(totals[n][0]), bits_of(totals[n][1]), bits_of(totals[n][2]),
                              bits_of(totals[n][3])};
        *(Words4*)(scores + (first + n) * BLOCK_LEN + lane_index() * 4) = words;
    }
}

// Grid x: blocks that share the positions of a row, grid y: rows.
KERNEL BOUNDS(THREADS, 2) score_positions(Args args) {
    SHARED Queries queries;
    allow_next_kernel();
    const int row = args.first_row + block_y();
    const int seen = row < args.step.counts[0] ? last_vector(args.step.positions[row]) + 1 : 0;
    const bool has_scores = seen > args.top_k;
    wait_for_previous_kernel();
    if (!has_scores) return;
    split_queries(args, row, queries);
    block_barrier();
    const i32* table = blocks_of(args.memory.block_table, args.step.sequences[row]);
    float* scores = args.scores + (i64)block_y() * args.score_stride;
    const int last = (seen - 1) / BLOCK_LEN;
    const int begin = (block_x() * WARPS + warp_index()) * OWN_BLOCKS;
    for (int first = begin; first <= last; first += grid_x() * THREADS / WARP * OWN_BLOCKS) {
        OwnKeys own;
        own.load(args.memory, table, first, seen);
        score_blocks(queries, own, scores, first, last);
    }
}

// What the threads of a block share while they choose.
struct Choice {
    i32 counts[DIGITS];
    i32 sums[WARP];
    i32 digit, left, equal;       // as they are found
    i32 above[WARP], same[WARP];  // in the range of each warp
};

// Count a digit in each lane. Most scores of a warp may have the same digit, and that of lane 0 is added
// once.
DEVICE void count_digits(i32* counts, int digit, bool is_counted) {
    const int common = shuffle((i32)digit, 0);
    const bool is_common = is_counted && digit == common;
    const u32 same = ballot(is_common);
    if (lane_index() == 0 && same) atomic_add(counts + common, count_bits(same));
    if (is_counted && !is_common) atomic_add(counts + digit, 1);
}

// Find the digit of the lowest score that is chosen, `shift` bits from the right, among the scores whose
// upper bits `known` are `lowest`, of which `left` are chosen.
DEVICE void find_digit(const float* scores, int seen, u32 lowest, u32 known, int shift, int left,
                       Choice& choice) {
    block_barrier();
    for (int i = thread_index(); i < DIGITS; i += CHOOSERS) choice.counts[i] = 0;
    block_barrier();
#pragma unroll 4
    for (int first = 0; first < seen; first += CHOOSERS) {
        const int i = first + thread_index();
        const u32 order = i < seen ? ordered(scores[i]) : 0;
        const u32 digit = known ? (order & ~known) >> shift : order >> shift;
        count_digits(choice.counts, digit, i < seen && (order & known) == lowest);
    }
    block_barrier();
    const int digit = DIGITS - 1 - 2 * thread_index();  // of two, the larger
    const int larger = choice.counts[digit], smaller = choice.counts[digit - 1];
    const int before = prefix_of(larger + smaller, choice.sums).before;
    if (before < left && left <= before + larger + smaller) {
        const bool is_larger = left <= before + larger;
        choice.digit = is_larger ? digit : digit - 1;
        choice.left = left - before - (is_larger ? 0 : larger);
        choice.equal = is_larger ? larger : smaller;
    }
    block_barrier();
}

// Write the positions whose scores are above `lowest`, and those equal to it but for the first `skipped`.
DEVICE void write_chosen(const float* scores, int seen, u32 lowest, int skipped, float* out, Choice& choice) {
    const int each = (seen + CHOOSERS - 1) / CHOOSERS * WARP;  // positions of a warp
    const int begin = warp_index() * each, end = min(seen, begin + each);
    int above = 0, same = 0;
#pragma unroll 4
    for (int i = begin + lane_index(); i < end; i += WARP) {
        const u32 order = ordered(scores[i]);
        above += order > lowest;
        same += order == lowest;
    }
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        above += shuffle_xor((i32)above, lanes);
        same += shuffle_xor((i32)same, lanes);
    }
    if (lane_index() == 0) choice.above[warp_index()] = above, choice.same[warp_index()] = same;
    block_barrier();
    above = same = 0;  // before the warp's range, then before its next positions
    for (int warp = 0; warp < warp_index(); ++warp) above += choice.above[warp], same += choice.same[warp];
    for (int first = begin; first < end; first += WARP) {
        const int i = first + lane_index();
        const u32 order = i < end ? ordered(scores[i]) : 0, lower_lanes = (1u << lane_index()) - 1;
        const u32 are_above = ballot(i < end && order > lowest),
                  are_same = ballot(i < end && order == lowest);
        const int same_before = same + count_bits(are_same & lower_lanes);
        const bool is_same = are_same >> lane_index() & 1, is_above = are_above >> lane_index() & 1;
        if (is_above || (is_same && same_before >= skipped)) {
            const int place = above + count_bits(are_above & lower_lanes);
            out[place + max(0, same_before - skipped)] = (float)i;
        }
        above += count_bits(are_above);
        same += count_bits(are_same);
    }
}

// Grid x: rows.
KERNEL BOUNDS(CHOOSERS, 1) choose_positions(Args args) {
    SHARED Choice choice;
    allow_next_kernel();
    const int row = args.first_row + block_x();
    const bool exists = row < args.step.counts[0];
    wait_for_previous_kernel();
    if (!exists) return;
    const int seen = last_vector(args.step.positions[row]) + 1;
    float* out = args.out + (i64)row * args.top_k;
    if (seen <= args.top_k) {
        for (int i = thread_index(); i < args.top_k; i += CHOOSERS) out[i] = i < seen ? (float)i : -1.0f;
        return;
    }
    const float* scores = args.scores + (i64)block_x() * args.score_stride;
    u32 lowest = 0, known = 0;  // the upper bits of the lowest order that is chosen, and which are known
    int left = args.top_k;
    for (int shift = 21; shift >= 0; shift = shift == 21 ? 10 : shift - 10) {
        find_digit(scores, seen, lowest, known, shift, left, choice);
        lowest |= (u32)choice.digit << shift;
        known = ~0u << shift;
        left = choice.left;
    }
    write_chosen(scores, seen, lowest, choice.equal - left, out, choice);
}
