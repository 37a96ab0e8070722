// Draws from the candidates of a row, as llmd.api.draws defines them, where the candidates are enough.
#pragma once

#include "outputs_sums.cuh"

constexpr int MOST = MAX_CANDIDATES / WARP;  // candidates of a lane
constexpr int UNDECIDED = -1;

struct DrawScratch {
    double filter_reached[MAX_CANDIDATES];  // sums of weights from the best token on
    double draw_reached[MAX_CANDIDATES];
};

// Philox4x32-10 (Salmon et al. 2011) with the purpose SAMPLE, which is 0: a number in (0, 1).
DEVICE double uniform_of(const OutputRow& row) {
    u32 counter[4] = {row.position, row.choice, 0, 0};
    u32 key[2] = {(u32)row.seed, (u32)(row.seed >> 32)};
    for (int round = 0; round < 10; ++round) {
        const u32 left = high_product(0xd2511f53u, counter[0]), right = high_product(0xcd9e8d57u, counter[2]);
        const u32 left_low = 0xd2511f53u * counter[0], right_low = 0xcd9e8d57u * counter[2];
        counter[0] = right ^ counter[1] ^ key[0];
        counter[1] = right_low;
        counter[2] = left ^ counter[3] ^ key[1];
        counter[3] = left_low;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return (counter[0] + 0.5) * 0x1p-32;
}

// Sums over the items of a warp, in order; lane l has the items from l * share on.
DEVICE void sum_in_order(const double (&weights)[MOST], int share, double* reached) {
    double sum = 0.0;
#pragma unroll
    for (int i = 0; i < MOST; ++i) sum += i < share ? weights[i] : 0.0;
    for (int lanes = 1; lanes < WARP; lanes *= 2) {
        const double before = shuffle_up(sum, lanes);
        if (lane_index() >= lanes) sum += before;
    }
    const double before = shuffle_up(sum, 1);
    sum = lane_index() == 0 ? 0.0 : before;
#pragma unroll
    for (int i = 0; i < MOST; ++i) {
        if (i >= share) continue;
        sum += weights[i];
        reached[lane_index() * share + i] = sum;
    }
}

// The candidates of a sampled row, in the lanes of a warp, and how many tokens the filters keep.
struct CandidateDraw {
    const OutputRow& row;
    const DrawScratch& scratch;
    int count;  // of candidates
    int share;  // candidates of a lane
    int vocab;
    int kept;             // tokens that are kept, if is_known
    bool is_known;        // false: more than the candidates, nobody knows how many
    double scaled[MOST];  // (z - best) / filter temperature

    DEVICE int item(int i) const { return lane_index() * share + i; }

    template <class Condition>
    DEVICE int count_items(Condition holds) const {
        int total = 0;
#pragma unroll
        for (int i = 0; i < MOST; ++i) {
            if (i < share) total += count_bits(ballot(item(i) < count && holds(i)));
        }
        return total;
    }

    // Keep the tokens whose ratio to the best one is at least this.
    DEVICE void keep_ratio(double least) {
        if (least == -infinity()) return;
        const int reaching = count_items([&](int i) { return scaled[i] >= least; });
        if (reaching < count) {
            kept = is_known ? min(kept, reaching) : reaching;
            is_known = true;
        } else if (kept > count) {
            is_known = is_known && count == vocab;
        }
    }

    // The weight of the kept tokens; negative if it is unknown.
    DEVICE double kept_weight(const double* reached, double row_weight) const {
        if (!is_known) return -1.0;
        if (kept <= count) return reached[kept - 1];
        return kept == vocab ? fmax(row_weight, reached[count - 1]) : -1.0;
    }

    // Return false if the candidates do not decide it.
    DEVICE bool keep_share(double row_weight) {
        const double weight = kept_weight(scratch.filter_reached, row_weight);
        if (weight < 0.0) return false;
        const double wanted = row.top_p * weight;
        const int below = count_items([&](int i) { return scratch.filter_reached[item(i)] < wanted; });
        if (below < count) {
            kept = min(kept, below + 1);
        } else if (kept > count) {
            is_known = false;
        }
        return true;
    }

    DEVICE int draw(double u, double row_weight) const {
        const double weight = kept_weight(scratch.draw_reached, row_weight);
        if (weight < 0.0) return UNDECIDED;
        const double target = u * weight;
        const int index = count_items([&](int i) { return scratch.draw_reached[item(i)] <= target; });
        if (index < min(kept, count)) return index;
        return kept <= count ? kept - 1 : UNDECIDED;
    }
};

// Return the place of the drawn token among the candidates' sorted keys, or UNDECIDED, in all lanes of a
// warp. The best logit is finite.
DEVICE int draw_candidate(const OutputRow& row, const RowSums& sums, const u64* keys, int count, int vocab,
                          double u, DrawScratch& scratch) {
    const int share = (count + WARP - 1) / WARP, kept = row.top_k < vocab ? (int)row.top_k : vocab;
    CandidateDraw draw = {row, scratch, count, share, vocab, kept, true, {}};
    const bool is_one = row.draw_temperature == row.filter_temperature;
    const double best = value_of(sums.best);
    double filter_weights[MOST] = {}, draw_weights[MOST] = {};
#pragma unroll
    for (int i = 0; i < MOST; ++i) {
        if (i >= share || draw.item(i) >= count) continue;
        const double logit = value_of(keys[draw.item(i)]) - best;
        draw.scaled[i] = logit / row.filter_temperature;
        filter_weights[i] = exp(draw.scaled[i]);
        draw_weights[i] = is_one ? filter_weights[i] : exp(logit / row.draw_temperature);
    }
    sum_in_order(filter_weights, share, scratch.filter_reached);
    sum_in_order(draw_weights, share, scratch.draw_reached);
    warp_barrier();
    draw.keep_ratio(row.min_p_before);
    if (row.top_p < 1.0 && !draw.keep_share(sums.filter_weight)) return UNDECIDED;
    draw.keep_ratio(row.min_p_after);
    return draw.draw(u, sums.draw_weight);
}
