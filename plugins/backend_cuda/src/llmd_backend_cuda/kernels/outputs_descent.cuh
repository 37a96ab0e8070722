// Draws from all tokens of a row, whatever the filters are: for the few rows whose candidates do not decide
// them.
//
// A block looks for the token at which a sum of weights in the order of the tokens exceeds a target. It adds
// the weights of ranges of keys, goes on with the range that the target is in, and sorts that once its keys
// fit in shared memory. The first ranges are equal steps of the logit, so that most are small enough at once:
// then the row is read twice. Weights are integers: their sums have the same bits in any order.
#pragma once

#include "outputs_draw.cuh"

constexpr int BINS_LOG = 10;
constexpr int NUM_BINS = 1 << BINS_LOG;
constexpr float UNIT = 0x1p44f;       // of a weight of 1; all weights of a row fit in 64 bits
constexpr float MOST_SCALED = 31.5f;  // exp(-x) is less than half a unit from here on

struct DescentScratch {
    u32 low[NUM_BINS], high[NUM_BINS];  // sums of weights
    u64 lane_sums[WARP];
    u64 rest;   // of the target, from the first key of the range
    u64 found;  // key
    i32 bin;
    i32 count;
    u32 first_order, last_order;
};

// A row of logits, and the memory of the block that reads it.
struct WholeRow {
    const float* logits;
    int vocab;
    float best;
    u64* keys;
    int capacity;
    DescentScratch& scratch;
};

// What a token counts in a sum.
struct Weigher {
    float best;
    Inverse inverse;
    bool is_one;  // each token counts 1

    DEVICE u64 operator()(float logit) const {
        return is_one ? 1 : (u64)(weight_of(scaled(best - logit, inverse)) * UNIT + 0.5f);
    }
};

// The sum that is looked for: a number of tokens, or a share of the weight of all tokens.
struct Aim {
    double amount;
    bool is_count;
    bool is_reached;  // find the token that reaches the sum; else the one that exceeds it

    // A token whose sum exceeds this integer is found.
    DEVICE u64 target(u64 total) const {
        if (is_count) return (u64)amount - 1;
        const double wanted = amount * (double)total;
        const u64 whole = (u64)wanted;
        const u64 target = is_reached && whole > 0 && whole == wanted ? whole - 1 : whole;
        return target < total ? target : total - 1;
    }
};

template <class Visit>
DEVICE void visit_logits(const WholeRow& row, Visit visit) {
    constexpr int AT_ONCE = 16;  // loads of a thread that are under way
#pragma unroll 1
    for (int first = thread_index(); first < row.vocab; first += THREADS * AT_ONCE) {
        float values[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int id = first + i * THREADS;
            values[i] = id < row.vocab ? row.logits[id] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int id = first + i * THREADS;
            if (id < row.vocab) visit(values[i], id);
        }
    }
}

DEVICE void clear_bins(DescentScratch& scratch) {
    block_barrier();
    for (int bin = thread_index(); bin < NUM_BINS; bin += THREADS) scratch.low[bin] = scratch.high[bin] = 0;
    block_barrier();
}

DEVICE void add_to_bin(DescentScratch& scratch, int bin, u64 weight) {
    const u32 low = (u32)weight;
    const u32 carry = atomic_add(&scratch.low[bin], low) + low < low;
    const u32 high = (u32)(weight >> 32) + carry;
    if (high) atomic_add(&scratch.high[bin], high);
}

DEVICE u64 bin_sum(const DescentScratch& scratch, int bin) {
    return (u64)scratch.high[bin] << 32 | scratch.low[bin];
}

// Return the sum of the lanes before this one, and that of all lanes.
DEVICE u64 sum_before(u64 mine, DescentScratch& scratch, u64& total) {
    scratch.lane_sums[lane_index()] = mine;
    warp_barrier();
    u64 before = 0;
    total = 0;
#pragma unroll 4
    for (int lane = 0; lane < WARP; ++lane) {
        if (lane < lane_index()) before += scratch.lane_sums[lane];
        total += scratch.lane_sums[lane];
    }
    return before;
}

// Find the bin in which the sum of weights exceeds the rest of the target, and reduce the rest by the bins
// before it. At first the bins have all tokens, and the aim says what the target is.
DEVICE void choose_bin(DescentScratch& scratch, const Aim& aim, bool is_first) {
    constexpr int OWN = NUM_BINS / WARP;
    block_barrier();
    if (warp_index() == 0) {
        const int first = lane_index() * OWN;
        u64 mine = 0, total;
#pragma unroll 4
        for (int i = 0; i < OWN; ++i) mine += bin_sum(scratch, first + (i + lane_index()) % OWN);
        u64 before = sum_before(mine, scratch, total);
        const u64 rest = is_first ? aim.target(total) : scratch.rest;
        warp_barrier();
        if (rest >= before && rest - before < mine) {
            int bin = first;
#pragma unroll 1
            for (; rest - before >= bin_sum(scratch, bin); ++bin) before += bin_sum(scratch, bin);
            scratch.bin = bin;
            scratch.rest = rest - before;
        }
    }
    block_barrier();
}

// Find the key whose sum of weights exceeds the rest of the target, among sorted ones.
DEVICE void choose_key(const u64* keys, int count, const Weigher& weigh, DescentScratch& scratch) {
    if (warp_index() == 0) {
        const int own = (count + WARP - 1) / WARP;
        const int first = min(lane_index() * own, count), end = min(first + own, count);
        u64 mine = 0, total;
#pragma unroll 1
        for (int i = first; i < end; ++i) mine += weigh(value_of(keys[i]));
        u64 before = sum_before(mine, scratch, total);
        if (scratch.rest >= before && scratch.rest - before < mine) {
            int i = first;
#pragma unroll 1
            for (u64 weight; scratch.rest - before >= (weight = weigh(value_of(keys[i]))); ++i)
                before += weight;
            scratch.found = keys[i];
        }
    }
    block_barrier();
}

// Return the least order of a logit, at most the best, for which a condition holds that holds for all better
// ones.
template <class Condition>
DEVICE u32 least_order(float best, Condition holds) {
    u32 least = ordered(-infinity()), most = ordered(best);
#pragma unroll 1
    while (least < most) {
        const u32 middle = least + (most - least) / 2;
        if (holds(value_of(middle))) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    return most;
}

DEVICE int significant_bits(u64 number) {
    const u32 high = (u32)(number >> 32);
    return high ? 64 - leading_zeros(high) : 32 - leading_zeros((u32)number);
}

// The first ranges: NUM_BINS equal steps of the logit, from the best one to those without weight.
struct Steps {
    float best;
    float per_logit;

    DEVICE int operator()(float logit) const {
        const float step = (best - logit) * per_logit;
        return step < NUM_BINS - 1 ? (int)step : NUM_BINS - 1;
    }
};

// The keys among which the token is, from the best to the last one.
struct Range {
    u64 first, last;
};

// Put the keys of a range that have a weight in shared memory, as far as there is room; return how many there
// are.
DEVICE int gather_keys(const WholeRow& row, Range range, const Weigher& weigh) {
    if (thread_index() == 0) row.scratch.count = 0;
    block_barrier();
    visit_logits(row, [&](float logit, int id) {
        const u64 key = key_of(logit, id);
        if (key < range.last || key > range.first || weigh(logit) == 0) return;
        const int place = atomic_add(&row.scratch.count, 1);
        if (place < row.capacity) row.keys[place] = key;
    });
    block_barrier();
    return row.scratch.count;
}

// The keys of a step of the logit. All threads of the block take part.
DEVICE Range keys_of_step(const WholeRow& row, const Steps& step_of, int step) {
    DescentScratch& scratch = row.scratch;
    if (thread_index() == 0) {
        scratch.last_order = least_order(row.best, [&](float logit) { return step_of(logit) <= step; });
        scratch.first_order =
            step == 0 ? ordered(row.best)
                      : least_order(row.best, [&](float logit) { return step_of(logit) < step; }) - 1;
    }
    block_barrier();
    return {(u64)scratch.first_order << 32 | 0xffffffffu, (u64)scratch.last_order << 32};
}

// Return the key of the token that the aim describes, among those with keys of at least `least`. All threads
// of the block take part.
DEVICE u64 find_token(const WholeRow& row, const Weigher& weigh, const Aim& aim, u64 least) {
    DescentScratch& scratch = row.scratch;
    const Steps step_of = {row.best, fminf(weigh.inverse.high * (NUM_BINS / MOST_SCALED), 1e30f)};
    Range range = {~(u64)0, least};
#pragma unroll 1
    for (bool is_first = true;; is_first = false) {
        const int shift = max(significant_bits(range.first - range.last) - BINS_LOG, 0);
        clear_bins(scratch);
        visit_logits(row, [&](float logit, int id) {
            const u64 key = key_of(logit, id);
            if (key < range.last || key > range.first) return;
            const u64 weight = weigh(logit);
            if (weight)
                add_to_bin(scratch, is_first ? step_of(logit) : (int)((range.first - key) >> shift), weight);
        });
        choose_bin(scratch, aim, is_first);
        if (is_first) {
            range = keys_of_step(row, step_of, scratch.bin);
            range.last = larger(range.last, least);
        } else {
            range.first -= (u64)scratch.bin << shift;
            range.last = larger(range.last, range.first - (((u64)1 << shift) - 1));
        }
        const int count = gather_keys(row, range, weigh);
        if (count > row.capacity) continue;
        sort_some(row.keys, count);
        choose_key(row.keys, count, weigh, scratch);
        return scratch.found;
    }
}

// Return the least key of the tokens with at least this ratio to the best one.
DEVICE u64 least_key(const WholeRow& row, double temperature, double ratio) {
    block_barrier();
    if (thread_index() == 0) {
        row.scratch.last_order = least_order(
            row.best, [&](float logit) { return ((double)logit - (double)row.best) / temperature >= ratio; });
    }
    block_barrier();
    return (u64)row.scratch.last_order << 32;
}

// Return the token that a row draws. Its best logit is finite. All threads of the block take part.
DEVICE int draw_from_row(const OutputRow& params, const WholeRow& row, double u) {
    enum Stage { TOP_K, RATIO_BEFORE, TOP_P, RATIO_AFTER, DRAW, NUM_STAGES };
    const Inverse filter = inverse_of(params.filter_temperature), draw = inverse_of(params.draw_temperature);
    u64 least = 0;  // of the keys that are kept, after the last stage of that which is drawn
#pragma unroll 1
    for (int stage = TOP_K; stage < NUM_STAGES; ++stage) {
        if (stage == RATIO_BEFORE || stage == RATIO_AFTER) {
            const double ratio = stage == RATIO_BEFORE ? params.min_p_before : params.min_p_after;
            if (ratio > -infinity()) least = larger(least, least_key(row, params.filter_temperature, ratio));
            continue;
        }
        const double amount = stage == TOP_K ? params.top_k : stage == TOP_P ? params.top_p : u;
        if (stage == TOP_K ? amount >= row.vocab : amount >= 1.0) continue;
        const Weigher weigh = {row.best, stage == DRAW ? draw : filter, stage == TOP_K};
        least = find_token(row, weigh, {amount, stage == TOP_K, stage == TOP_P}, least);
    }
    return id_of(least);
}
