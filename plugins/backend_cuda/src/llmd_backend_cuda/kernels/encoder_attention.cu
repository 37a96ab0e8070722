// encoder_attention: out[r] = sum over t of weight[t] v[t],  weight = softmax over t of q[r] . k[t] * scale
//
//   t             every row of the sequence of r in this step
//   q, k, v, out  [rows, heads, HEAD_DIM]  f32; q, k, v and the exponentials are rounded to float16 when they
//                 are multiplied, the sums of products and of exponentials are float32
//   work   a block has TILE rows of the step and one head (block y); a warp has 16 of the rows, and its
//          registers have their queries and sums. For each sequence that has rows in the tile, all warps load
//          KEYS keys and values at a time into shared memory, and the warps that have rows of it attend to
//          them, with the largest score so far (online softmax)
//   exact  keys are cut into parts from the beginning of their sequence, so a row never depends on its place
//          in the step. Rows of a warp that belong to another sequence are computed too, but not written
//   speed  bound by tensor cores and, about equally, by the conversion of keys and values
//   from   Dao 2023, "FlashAttention-2"; Milakov & Gimelshein 2018, "Online normalizer calculation for
//          softmax"

#include "step.cuh"

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif

constexpr int DIM = (HEAD_DIM + 15) / 16 * 16;               // elements of a head, padded with zeros
constexpr int KEYS = DIM <= 64 ? 64 : DIM <= 192 ? 32 : 16;  // in shared memory
constexpr int AT_ONCE = DIM <= 192 ? 4 : 1;                  // keys that a thread reads before it stores them
constexpr int WARPS = 4;
constexpr int THREADS = WARPS * WARP;
constexpr int TILE = 16 * WARPS;
constexpr int COLUMNS = DIM / 4;  // groups of four elements of a head
// Strides with which the lanes of a warp read from different banks.
constexpr int KEY_STRIDE = DIM + 8;    // float16 of a key
constexpr int VALUE_STRIDE = DIM + 4;  // elements of four values

struct Args {
    Step step;
    const float* q;
    const float* k;
    const float* v;
    float* out;
    i32 heads;
    float scale;  // log2(e) times that of the op: exponentials are powers of two
};

// Keys [KEYS][KEY_STRIDE], and values [KEYS / 16][4][VALUE_STRIDE]: element (g, t, d) has dimension d of the
// values 2t, 2t+1, 2t+8 and 2t+9 of group g, as a lane of multiply_tile needs them.
struct Loaded {
    Words2 keys[KEYS * KEY_STRIDE / 4];
    Words2 values[KEYS / 4 * VALUE_STRIDE];
};

struct Four {
    float at[4];
};

// Four elements of a head of a row; zeros if the row does not exist, and beyond the head.
DEVICE Four read_four(const float* head, int stride, int row, int end, int column) {
    Four four = {0.0f, 0.0f, 0.0f, 0.0f};
    if (row >= end) return four;
    const float* from = head + (i64)row * stride + column;
#if HEAD_DIM % 4 == 0
    if (column < HEAD_DIM) {
        const Words4 words = *(const Words4*)from;
        four = {float_of(words.x), float_of(words.y), float_of(words.z), float_of(words.w)};
    }
#else
    for (int i = 0; i < 4; ++i) {
        if (column + i < HEAD_DIM) four.at[i] = from[i];
    }
#endif
    return four;
}

// Load the keys of the rows from `first` on; zeros follow the last.
DEVICE void load_keys(Loaded& loaded, const float* head, int stride, int first, int end) {
#pragma unroll AT_ONCE
    for (int n = thread_index(); n < KEYS * COLUMNS; n += THREADS) {
        const int key = n / COLUMNS, column = n % COLUMNS * 4;
        const Four four = read_four(head, stride, first + key, end, column);
        loaded.keys[(key * KEY_STRIDE + column) / 4] =
            Words2{to_half2(four.at[0], four.at[1]), to_half2(four.at[2], four.at[3])};
    }
}

DEVICE void load_values(Loaded& loaded, const float* head, int stride, int first, int end) {
#pragma unroll 1
    for (int n = thread_index(); n < KEYS / 4 * COLUMNS; n += THREADS) {
        const int quad = n / COLUMNS, column = n % COLUMNS * 4;
        const int row = first + quad / 4 * 16 + quad % 4 * 2;
        const Four a = read_four(head, stride, row, end, column);
        const Four b = read_four(head, stride, row + 1, end, column);
        const Four c = read_four(head, stride, row + 8, end, column);
        const Four d = read_four(head, stride, row + 9, end, column);
        Words4* to = (Words4*)&loaded.values[quad * VALUE_STRIDE + column];
        to[0] = Words4{to_half2(a.at[0], b.at[0]), to_half2(c.at[0], d.at[0]), to_half2(a.at[1], b.at[1]),
                       to_half2(c.at[1], d.at[1])};
        to[1] = Words4{to_half2(a.at[2], b.at[2]), to_half2(c.at[2], d.at[2]), to_half2(a.at[3], b.at[3]),
                       to_half2(c.at[3], d.at[3])};
    }
}

// Two neighbouring elements of a query; zeros beyond the rows and the head.
DEVICE half2 read_query(const float* head, int stride, int row, int end, int column) {
    if (row >= end) return 0;
    const float* from = head + (i64)row * stride + column;
    return to_half2(column < HEAD_DIM ? from[0] : 0.0f, column + 1 < HEAD_DIM ? from[1] : 0.0f);
}

DEVICE void write_pair(float* to, int column, float first, float second) {
#if HEAD_DIM % 2 == 0
    if (column < HEAD_DIM) *(Words2*)(to + column) = Words2{bits_of(first), bits_of(second)};
#else
    if (column < HEAD_DIM) to[column] = first;
    if (column + 1 < HEAD_DIM) to[column + 1] = second;
#endif
}

// What a warp has of its 16 rows. A lane has the rows lane / 4 and lane / 4 + 8: of every eight scores or
// elements of a head, it has the elements lane % 4 * 2 and the next one of the first row, then the same of
// the second row.
struct Attention {
    float sums[DIM / 8][4] = {};                    // of exponentials times values
    float total[2] = {};                            // of the exponentials that this lane has
    float largest[2] = {-infinity(), -infinity()};  // score
};

// scores += q . k
DEVICE void score(float (&scores)[KEYS / 8][4], const u32 (&q)[DIM / 16][4], const Loaded& loaded) {
    const int lane = lane_index();
    const u16* row = (const u16*)loaded.keys + (lane / 16 * 8 + lane % 8) * KEY_STRIDE + lane / 8 % 2 * 8;
#pragma unroll
    for (int k = 0; k < DIM / 16; ++k) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; n += 2) {
            u32 words[4];
            load_matrices(words, row + n * 8 * KEY_STRIDE + k * 16);
            const u32 low[2] = {words[0], words[1]}, high[2] = {words[2], words[3]};
            multiply_tile(scores[n], q[k], low);
            multiply_tile(scores[n + 1], q[k], high);
        }
    }
}

// Replace scores by exponentials relative to the largest score so far. Only the first `count` keys exist.
DEVICE void soften(Attention& state, float (&scores)[KEYS / 8][4], float scale, int count) {
    const int column = lane_index() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float largest = state.largest[half];
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
            for (int i = 0; i < 2; ++i) {
                float& at = scores[n][2 * half + i];
                at = n * 8 + column + i < count ? at * scale : -infinity();
                largest = fmaxf(largest, at);
            }
        }
        largest = fmaxf(largest, shuffle_xor(largest, 1));
        largest = fmaxf(largest, shuffle_xor(largest, 2));
        const float shrink = fast_exp2(state.largest[half] - largest);
        float total = state.total[half] * shrink;
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
            for (int i = 0; i < 2; ++i) {
                float& at = scores[n][2 * half + i];
                at = fast_exp2(at - largest);
                total += at;
            }
        }
        state.largest[half] = largest;
        state.total[half] = total;
#pragma unroll
        for (int n = 0; n < DIM / 8; ++n) {
            for (int i = 0; i < 2; ++i) state.sums[n][2 * half + i] *= shrink;
        }
    }
}

// sums += exponentials times values
DEVICE void add_values(Attention& state, const float (&weights)[KEYS / 8][4], const Loaded& loaded) {
    const Words2* at = loaded.values + lane_index() % 4 * VALUE_STRIDE + lane_index() / 4;
#pragma unroll
    for (int k = 0; k < KEYS / 16; ++k) {
        const float (&low)[4] = weights[2 * k], (&high)[4] = weights[2 * k + 1];
        const u32 rounded[4] = {to_half2(low[0], low[1]), to_half2(low[2], low[3]),
                                to_half2(high[0], high[1]), to_half2(high[2], high[3])};
#pragma unroll
        for (int n = 0; n < DIM / 8; ++n) {
            const Words2 words = at[k * 4 * VALUE_STRIDE + n * 8];
            const u32 values[2] = {words.x, words.y};
            multiply_tile(state.sums[n], rounded, values);
        }
    }
}

// Write the rows of [begin, end) that the warp has from `first` on.
DEVICE void write_rows(const Attention& state, float* head, int stride, int first, int begin, int end) {
    float total[2] = {state.total[0], state.total[1]};
    for (int lanes = 1; lanes < 4; lanes *= 2) {
        for (int half = 0; half < 2; ++half) total[half] += shuffle_xor(total[half], lanes);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = first + lane_index() / 4 + 8 * half;
        if (row < begin || row >= end) continue;
        float* to = head + (i64)row * stride;
#pragma unroll
        for (int n = 0; n < DIM / 8; ++n) {
            write_pair(to, n * 8 + lane_index() % 4 * 2, state.sums[n][2 * half] / total[half],
                       state.sums[n][2 * half + 1] / total[half]);
        }
    }
}

KERNEL BOUNDS(THREADS, 1) encoder_attention(Args args) {
    SHARED Words4 shared[(sizeof(Loaded) + 15) / 16];
    Loaded& loaded = *(Loaded*)shared;
    const int rows = args.step.counts[0], tile = block_x() * TILE;
    if (tile >= rows) return;
    const int stride = args.heads * HEAD_DIM, head = block_y() * HEAD_DIM;
    const int first = tile + warp_index() * 16;

    u32 q[DIM / 16][4];
#pragma unroll
    for (int k = 0; k < DIM / 16; ++k) {
        const int row = first + lane_index() / 4, column = k * 16 + lane_index() % 4 * 2;
        for (int i = 0; i < 4; ++i) {
            q[k][i] = read_query(args.q + head, stride, row + i % 2 * 8, rows, column + i / 2 * 8);
        }
    }

    const int last = args.step.sequences[(tile + TILE < rows ? tile + TILE : rows) - 1];
    for (int sequence = args.step.sequences[tile]; sequence <= last; ++sequence) {
        const int from = args.step.row_offsets[sequence], to = args.step.row_offsets[sequence + 1];
        const bool takes_part = first < to && first + 16 > from;
        Attention state;
        for (int key = from; key < to; key += KEYS) {
            block_barrier();
            load_keys(loaded, args.k + head, stride, key, to);
            load_values(loaded, args.v + head, stride, key, to);
            block_barrier();
            if (!takes_part) continue;
            float scores[KEYS / 8][4] = {};
            score(scores, q, loaded);
            soften(state, scores, args.scale, to - key);
            add_values(state, scores, loaded);
        }
        if (takes_part) write_rows(state, args.out + head, stride, first, from, to);
    }
}
