// Weights of logits, and the sums of a row from those of its parts.
#pragma once

#include "outputs_order.cuh"

// 1 / temperature in two floats, so that its rounding does not shift all weights to one side.
struct Inverse {
    float high, low;
};

DEVICE Inverse inverse_of(double temperature) {
    const double inverse = fmin(1.0 / temperature, 1e30);
    const float high = (float)inverse;
    return {high, (float)(inverse - high)};
}

DEVICE float scaled(float below, Inverse inverse) { return fmaf(below, inverse.high, below * inverse.low); }

// exp(-scaled); 0 if it is tiny, or if `scaled` is no number because the logit or the best one is -inf.
DEVICE float weight_of(float scaled) { return scaled < 100.0f ? expf(-scaled) : 0.0f; }

// What is known of a whole row.
struct RowSums {
    u64 best;  // key of the best edited logit
    float raw_logsumexp, edited_logsumexp, entropy, deviation;
    i32 count;
    double filter_weight;  // sum of the weights relative to the best logit, at the filter temperature
    double draw_weight;    // the same at the draw temperature
};

DEVICE double warp_sum(double value) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) value += shuffle_xor(value, lanes);
    return value;
}

// The factor from weights relative to the best logit of a part to weights relative to that of the row.
DEVICE double part_factor(float part_best, float best, double temperature) {
    return part_best == -infinity() ? 0.0 : exp(((double)part_best - best) / temperature);
}

DEVICE float logsumexp(double sum, double scaled_best) {
    return sum > 0.0 ? (float)(log(sum) + scaled_best) : -infinity();
}

// The functions below are called by a warp. Lane l sums the parts l, l + 32, ...: this order depends on the
// parts only. The first lane writes the sums of the row.

DEVICE u64 best_of_parts(const PartSums* parts, int count) {
    u64 best = 0;
#pragma unroll 1
    for (int part = lane_index(); part < count; part += WARP) best = larger(best, parts[part].best);
    return warp_largest(best);
}

DEVICE void sum_raw(const PartSums* parts, int count, RowSums& sums) {
    float best = -infinity();
#pragma unroll 1
    for (int part = lane_index(); part < count; part += WARP) best = fmaxf(best, parts[part].raw_best);
    best = warp_max(best);
    double sum = 0.0;
#pragma unroll 1
    for (int part = lane_index(); part < count; part += WARP) {
        sum += parts[part].raw_sum * part_factor(parts[part].raw_best, best, 1.0);
    }
    sum = warp_sum(sum);
    if (lane_index() == 0) sums.raw_logsumexp = logsumexp(sum, best);
}

// The sum and the weighted sum of a part are moved from its best logit to that of the row.
DEVICE void sum_edited(const PartSums* parts, int count, double temperature, RowSums& sums) {
    const float best = value_of(best_of_parts(parts, count));
    double sum = 0.0, weighted = 0.0;
#pragma unroll 1
    for (int part = lane_index(); part < count; part += WARP) {
        const float part_best = value_of(parts[part].best);
        const double factor = part_factor(part_best, best, temperature);
        if (factor == 0.0) continue;
        const double distance = ((double)part_best - best) / temperature;
        sum += parts[part].sum * factor;
        weighted += (parts[part].weighted + distance * parts[part].sum) * factor;
    }
    sum = warp_sum(sum);
    weighted = warp_sum(weighted);
    if (lane_index() == 0) {
        sums.edited_logsumexp = logsumexp(sum, best / temperature);
        sums.entropy = sum > 0.0 ? (float)(log(sum) - weighted / sum) : 0.0f;
    }
}

// The mean of a part is corrected by what its deviations from it add up to.
DEVICE double exact_mean(const PartSums& part) { return part.mean + (double)part.deviations / part.count; }

DEVICE void sum_deviations(const PartSums* parts, int count, RowSums& sums) {
    double allowed = 0.0, mean = 0.0, squares = 0.0;
#pragma unroll 1
    for (int part = lane_index(); part < count; part += WARP) {
        if (parts[part].count == 0) continue;
        allowed += parts[part].count;
        mean += parts[part].count * exact_mean(parts[part]);
    }
    allowed = warp_sum(allowed);
    mean = warp_sum(mean) / fmax(allowed, 1.0);
#pragma unroll 1
    for (int part = lane_index(); part < count; part += WARP) {
        const PartSums& p = parts[part];
        if (p.count == 0) continue;
        const double distance = exact_mean(p) - mean;
        squares += p.squares - (double)p.deviations * p.deviations / p.count + p.count * distance * distance;
    }
    squares = warp_sum(squares);
    if (lane_index() == 0) {
        sums.count = (i32)allowed;
        sums.deviation = (float)sqrt(fmax(squares, 0.0) / fmax(allowed, 1.0));
    }
}

DEVICE void sum_weights(const PartSums* parts, int count, const OutputRow& row, RowSums& sums) {
    const float best = value_of(best_of_parts(parts, count));
    double filter = 0.0, draw = 0.0;
#pragma unroll 1
    for (int part = lane_index(); part < count; part += WARP) {
        const float part_best = value_of(parts[part].best);
        filter += parts[part].filter_sum * part_factor(part_best, best, row.filter_temperature);
        draw += parts[part].draw_sum * part_factor(part_best, best, row.draw_temperature);
    }
    filter = warp_sum(filter);
    draw = warp_sum(draw);
    if (lane_index() == 0) {
        sums.filter_weight = filter;
        sums.draw_weight = draw;
    }
}

// Sum the parts of a row. All threads of the block take part: each kind of sum has a warp, so that none waits
// for another.
DEVICE void sum_parts(const OutputsArgs& args, const OutputRow& row, const PartSums* parts, RowSums& sums) {
    const int count = num_parts(args.vocab), warp = warp_index();
    const bool is_described = row.record >= 0, weighs_row = needs_row_weight(args, row);
    if (warp == 0) {
        const u64 best = best_of_parts(parts, count);
        if (lane_index() == 0) sums.best = best;
    }
    if (warp == 1 && is_described) sum_edited(parts, count, row.temperature, sums);
    if (warp == 2 && is_described) sum_deviations(parts, count, sums);
    if (warp == 3 && is_described) sum_raw(parts, count, sums);
    if (warp == 4 && weighs_row) sum_weights(parts, count, row, sums);
    block_barrier();
}
