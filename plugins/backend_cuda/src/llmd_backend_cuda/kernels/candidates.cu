// From logits to candidates and tokens: all that a selection asks for, in two kernels.
//
//   scan_parts   grid [parts, outputs]. A block has PART logits of a row in registers: it applies edits and
//                masks, keeps the best logit of each group of 32, and adds up what the whole row needs.
//   finish_rows  grid [outputs]. A block takes a row: it adds up the parts, selects the candidates from the
//                groups, and draws the token.
//
//   speed  A row of 128k logits is 64 blocks, which wait for one round of loads and some exchanges; many rows
//          are bound by memory. The second kernel is bound by latency: it reads the groups and 32 logits for
//          each candidate, and sorts a few hundred keys. Rows of which only the best token is wanted skip all
//          but that. Only a draw that the candidates do not decide reads its row again (outputs_descent.cuh).
//   exact  Sums of a part are float32: first of a thread, then of the lanes, then of the warps. Sums of parts
//          are float64. Their order depends on the vocabulary only.
#include "outputs_descent.cuh"
#include "outputs_select.cuh"

// Sums over the logits of a part, of a warp or of the block.
struct PartValues {
    u64 best;
    float raw_best;
    float total;  // of the allowed logits
    i32 count;    // of the allowed logits
};

constexpr int NUM_SUMS = 7;
constexpr int LANES_OF_GROUP = WARP / LOADS;  // lanes that end up with the best logit of the same group

struct PartScratch {
    float tile[PART];
    PartValues values[WARPS];
    float sums[WARPS][NUM_SUMS];
};

DEVICE float apply_edit(float z, const Edit& edit) {
    // The product is rounded once before the addition: through double, as a compiler could fuse both.
    const float scaled = z > 0.0f ? z / edit.factor : (float)((double)z * edit.factor);
    return scaled + edit.bias;
}

// Apply the edits whose ids are in the part. The ids of a row are distinct.
DEVICE void apply_edits(const Edit* edits, int count, int first_id, float (&z)[LOADS], float* tile) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) tile[i * THREADS + thread_index()] = z[i];
    block_barrier();
    for (int i = thread_index(); i < count; i += THREADS) {
        const u32 place = (u32)(edits[i].id - first_id);
        if (place < PART) tile[place] = apply_edit(tile[place], edits[i]);
    }
    block_barrier();
#pragma unroll
    for (int i = 0; i < LOADS; ++i) z[i] = tile[i * THREADS + thread_index()];
}

// Edit, mask and store the logits of a part.
DEVICE void edit_part(const OutputsArgs& args, const OutputRow& row, int output, int first_id,
                      float (&z)[LOADS], float* tile) {
    if (row.late >= 0) {
        const int first = args.late_offsets[row.late], end = args.late_offsets[row.late + 1];
        apply_edits(*args.late_edits + first, end - first, first_id, z, tile);
    } else if (row.num_edits > 0) {
        apply_edits(args.header->edits + row.first_edit, row.num_edits, first_id, z, tile);
    }
    float* edited = args.edited + (i64)output * args.vocab;
    const u32* mask = args.masks + (i64)max(row.mask, 0) * num_groups(args.vocab);
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const int id = first_id + i * THREADS + thread_index();
        if (id >= args.vocab) continue;
        if (row.mask >= 0 && !(mask[id / 32] >> id % 32 & 1)) z[i] = -infinity();
        edited[id] = z[i];
    }
}

DEVICE PartValues merge(const PartValues& a, const PartValues& b) {
    return {larger(a.best, b.best), fmaxf(a.raw_best, b.raw_best), a.total + b.total, a.count + b.count};
}

// Return the values of the block's logits, the same in all threads.
DEVICE PartValues find_values(const float (&raw)[LOADS], const float (&z)[LOADS], int first_id, int vocab,
                              PartValues* of_warps) {
    float best = z[0], raw_best = raw[0], total = 0.0f;
    int place = 0, count = 0;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        if (z[i] > best) {
            best = z[i];
            place = i;
        }
        raw_best = fmaxf(raw_best, raw[i]);
        if (z[i] > -infinity()) {
            total += z[i];
            count += 1;
        }
    }
    const int id = first_id + place * THREADS + thread_index();
    PartValues mine = {id < vocab ? key_of(best, id) : 0, raw_best, total, count};
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const PartValues other = {shuffle_xor(mine.best, lanes), shuffle_xor(mine.raw_best, lanes),
                                  shuffle_xor(mine.total, lanes), shuffle_xor(mine.count, lanes)};
        mine = merge(mine, other);
    }
    if (lane_index() == 0) of_warps[warp_index()] = mine;
    block_barrier();
    PartValues all = of_warps[0];
    for (int warp = 1; warp < WARPS; ++warp) all = merge(all, of_warps[warp]);
    return all;
}

// Return the best logit of a group, each LANES_OF_GROUP neighbours that of one load, in order. At first, two
// lanes exchange halves of their loads again and again, and each keeps the better logit of both for its half.
template <int half>
DEVICE float best_of_group(float (&best)[LOADS]) {
    const int lanes = half * LANES_OF_GROUP;
    const bool keeps_upper = lane_index() & lanes;
#pragma unroll
    for (int i = 0; i < half; ++i) {
        const float kept = keeps_upper ? best[i + half] : best[i];
        const float given = keeps_upper ? best[i] : best[i + half];
        best[i] = fmaxf(kept, shuffle_xor(given, lanes));
    }
    if constexpr (half > 1) return best_of_group<half / 2>(best);
    float whole = best[0];
    for (int lanes = LANES_OF_GROUP / 2; lanes > 0; lanes /= 2)
        whole = fmaxf(whole, shuffle_xor(whole, lanes));
    return whole;
}

// Store the best logit of each group. A group is what a warp loads at once.
DEVICE void store_groups(const float (&z)[LOADS], int first_id, int vocab, u32* group_best) {
    float best[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) best[i] = z[i];
    const float whole = best_of_group<LOADS / 2>(best);
    const int group = first_id / GROUP + lane_index() / LANES_OF_GROUP * WARPS + warp_index();
    if (lane_index() % LANES_OF_GROUP == 0 && group < num_groups(vocab)) group_best[group] = ordered(whole);
}

// Add a logit that is `below` the best one to the sum of weights at a temperature.
DEVICE void add_weight(float& sum, float below, Inverse inverse) { sum += weight_of(scaled(below, inverse)); }

DEVICE void sum_described(const float (&raw)[LOADS], const float (&z)[LOADS], const PartValues& values,
                          float temperature, float mean, float (&sums)[NUM_SUMS]) {
    const Inverse inverse = inverse_of(temperature), one = {1.0f, 0.0f};
    const float best = value_of(values.best);
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        add_weight(sums[0], values.raw_best - raw[i], one);
        const float x = scaled(best - z[i], inverse);
        const float weight = weight_of(x);
        sums[1] += weight;
        if (weight > 0.0f) sums[2] -= weight * x;
        const float deviation = z[i] > -infinity() ? z[i] - mean : 0.0f;
        sums[5] += deviation;
        sums[6] += deviation * deviation;
    }
}

DEVICE void sum_draws(const OutputRow& row, const float (&z)[LOADS], float best, float (&sums)[NUM_SUMS]) {
    const Inverse filter = inverse_of(row.filter_temperature), draw = inverse_of(row.draw_temperature);
    const bool is_one = row.filter_temperature == row.draw_temperature;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        add_weight(sums[4], best - z[i], draw);
        if (!is_one) add_weight(sums[3], best - z[i], filter);
    }
    if (is_one) sums[3] = sums[4];
}

KERNEL BOUNDS(THREADS, 4) scan_parts(OutputsArgs args) {
    SHARED PartScratch shared;
    wait_for_previous_kernel();
    allow_next_kernel();
    const int output = block_y(), first_id = block_x() * PART;
    const float* logits = args.raw + (i64)output * args.vocab;
    float raw[LOADS], z[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {  // before all else, as this takes longest
        const int id = first_id + i * THREADS + thread_index();
        z[i] = raw[i] = id < args.vocab ? logits[id] : -infinity();
    }
    if (!is_due(args, output)) return;
    const OutputRow& row = args.rows[output];
    const bool is_described = row.record >= 0, weighs_row = needs_row_weight(args, row);
    if (is_edited(row)) edit_part(args, row, output, first_id, z, shared.tile);

    const PartValues values = find_values(raw, z, first_id, args.vocab, shared.values);
    const i64 groups = (i64)output * num_groups(args.vocab);
    if (is_described || row.kind == SAMPLED) store_groups(z, first_id, args.vocab, args.group_best + groups);
    if (is_described && is_edited(row) && args.header->raw_top > 0) {
        store_groups(raw, first_id, args.vocab, args.raw_group_best + groups);
    }

    float sums[NUM_SUMS] = {};
    const float mean = values.total / max(values.count, 1);
    if (is_described) sum_described(raw, z, values, row.temperature, mean, sums);
    if (weighs_row) sum_draws(row, z, value_of(values.best), sums);
    if (is_described || weighs_row) {
#pragma unroll
        for (int i = 0; i < NUM_SUMS; ++i) {
            sums[i] = warp_sum(sums[i]);
            if (lane_index() == 0) shared.sums[warp_index()][i] = sums[i];
        }
        block_barrier();
    }
    if (thread_index() != 0) return;
    if (is_described || weighs_row) {
#pragma unroll
        for (int i = 0; i < NUM_SUMS; ++i) {
            sums[i] = 0.0f;
            for (int warp = 0; warp < WARPS; ++warp) sums[i] += shared.sums[warp][i];
        }
    }
    args.parts[(i64)output * num_parts(args.vocab) + block_x()] = {
        values.best, values.raw_best, sums[0], sums[1],     sums[2], sums[3], sums[4],
        mean,        sums[5],         sums[6], values.count};
}

struct RowScratch {
    RowSums sums;
    SelectScratch select;
    DrawScratch draw;
    DescentScratch descent;
    i32 drawn;
};

// Write the sums and the candidates of a row.
DEVICE void write_record(const OutputsArgs& args, const OutputRow& row, const RowSums& sums, const float* raw,
                         const float* edited, const u64* keys, int count) {
    u32* record = args.records + (i64)row.record * record_words(count);
    if (thread_index() == 0) {
        record[0] = bits_of(sums.raw_logsumexp);
        record[1] = bits_of(sums.edited_logsumexp);
        record[2] = bits_of(sums.entropy);
        record[3] = bits_of(sums.deviation);
        record[4] = sums.count;
        record[5] =
            row.target < 0 ? 0x7fc00000u : bits_of(raw[row.target]);  // not a number: there is no target
    }
    u32* lists = record + RECORD_START;
    for (int i = thread_index(); i < count; i += THREADS) {
        const int id = id_of(keys[i]);
        lists[i] = id;
        lists[count + i] = bits_of(edited[id]);
        lists[2 * count + i] = bits_of(raw[id]);
    }
}

// Write the ids and values of the best raw logits.
DEVICE void write_top(const OutputsArgs& args, const OutputRow& row, const float* raw, const u64* keys,
                      int count, int top) {
    u32* lists = args.records + (i64)row.record * record_words(count) + RECORD_START + 3 * count;
    for (int i = thread_index(); i < top; i += THREADS) {
        const int id = id_of(keys[i]);
        lists[i] = id;
        lists[MAX_TOP + i] = bits_of(raw[id]);
    }
}

// Return the token that a row draws; `keys` are its `count` best. All threads of the block take part.
DEVICE int draw_token(const OutputsArgs& args, const OutputRow& row, const float* logits, u64* keys,
                      int count, RowScratch& shared) {
    const double u = uniform_of(row);
    if (warp_index() == 0) {
        const int drawn = draw_candidate(row, shared.sums, keys, count, args.vocab, u, shared.draw);
        if (lane_index() == 0) shared.drawn = drawn;
    }
    block_barrier();
    if (shared.drawn != UNDECIDED) return id_of(keys[shared.drawn]);
    const WholeRow whole = {logits, args.vocab,    value_of(shared.sums.best),
                            keys,   args.capacity, shared.descent};
    return draw_from_row(row, whole, u);
}

KERNEL BOUNDS(THREADS, 2) finish_rows(OutputsArgs args) {
    SHARED RowScratch shared;
    DYNAMIC_SHARED(memory);
    u64* keys = (u64*)memory;
    const int output = block_x();
    wait_for_previous_kernel();
    allow_next_kernel();
    if (!is_due(args, output)) return;
    const OutputRow& row = args.rows[output];
    sum_parts(args, row, args.parts + (i64)output * num_parts(args.vocab), shared.sums);
    const bool is_described = row.record >= 0;
    const bool draws = row.kind == SAMPLED && fabsf(value_of(shared.sums.best)) < infinity();
    int token = id_of(shared.sums.best);
    if (is_described || draws) {
        const float* raw = args.raw + (i64)output * args.vocab;
        const float* logits = is_edited(row) ? args.edited + (i64)output * args.vocab : raw;
        const i64 groups = (i64)output * num_groups(args.vocab);
        const int count = min(args.num_candidates, args.vocab);
        const int top = is_described ? args.header->raw_top : 0;
        const bool edits = is_edited(row);
        // The best raw logits of an edited row are selected apart, before the candidates. There is one call
        // of each function, as calls are inlined.
#pragma unroll 1
        for (int turn = edits && top > 0 ? 0 : 1; turn < 2; ++turn) {
            const bool is_raw = turn == 0;
            const u32* group_best = (is_raw ? args.raw_group_best : args.group_best) + groups;
            const int kept = is_raw ? top : max(count, edits ? 0 : top);
            select_best(is_raw ? raw : logits, group_best, args.vocab, kept, keys, shared.select);
            if (is_raw || !edits) write_top(args, row, raw, keys, count, top);
        }
        if (is_described) write_record(args, row, shared.sums, raw, logits, keys, count);
        if (draws) token = draw_token(args, row, logits, keys, count, shared);
    }
    if (thread_index() == 0) args.tokens[output] = token;
}
