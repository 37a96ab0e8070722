// Draws as llmd.api.draws defines them, in float32: from the sorted candidates where they decide it, else from the row.

const uint SEARCHES = 16; // thresholds that a search tries at once: two sums of each thread in one of `keys`

shared uvec2 found_key;
shared uint drawn_place;

struct Row {
    uint z_at;   // its edited logits
    float best;  // the best of them, finite
    float filter_temperature, draw_temperature, top_p, min_p_before, min_p_after, u;
    uint top_k;
};

// Philox4x32-10 (Salmon et al. 2011) with the purpose SAMPLE, which is 0: a number in [0, 1].
float uniform_of(uint of_row) {
    uvec4 counter = uvec4(work[of_row + POSITION], work[of_row + CHOICE], 0u, 0u);
    uvec2 key = uvec2(work[of_row + SEED], work[of_row + SEED + 1u]);
    for (uint round_number = 0; round_number < 10u; round_number++) {
        uint left_high, left_low, right_high, right_low;
        umulExtended(0xd2511f53u, counter.x, left_high, left_low);
        umulExtended(0xcd9e8d57u, counter.z, right_high, right_low);
        counter = uvec4(right_high ^ counter.y ^ key.x, right_low, left_high ^ counter.w ^ key.y, left_low);
        key += uvec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return (float(counter.x) + 0.5) * 2.3283064365386963e-10;
}

Row row_of(uint of_row, uint z_at, float best) {
    return Row(z_at, best, number(of_row + FILTER_TEMPERATURE), number(of_row + DRAW_TEMPERATURE),
               number(of_row + TOP_P), number(of_row + MIN_P_BEFORE), number(of_row + MIN_P_AFTER), uniform_of(of_row),
               work[of_row + TOP_K]);
}

// How many of the best tokens the filters keep. If it is not known, there are more than candidates.
struct Kept {
    uint count;
    bool is_known;
};

Kept keep_ratio(Kept kept, Row row, uint candidates, uint vocab, float least) {
    if (is_cut(least)) {
        return kept;
    }
    uint reaching = 0u;
    while (reaching < candidates && !is_cut(logit_of(keys[reaching])) &&
           (logit_of(keys[reaching]) - row.best) / row.filter_temperature >= least) {
        reaching++;
    }
    if (reaching < candidates) {
        return Kept(kept.is_known ? min(kept.count, reaching) : reaching, true);
    }
    return Kept(kept.count, kept.is_known && (kept.count <= candidates || candidates == vocab));
}

// The weight of the first `count` tokens; of all of them if there are not more candidates.
float weight_of_first(uint count, Row row, float temperature, uint candidates, uint vocab, float of_row) {
    precise float sum = 0.0;
    for (uint i = 0; i < min(count, candidates); i++) {
        sum += weight_of(logit_of(keys[i]), row.best, temperature);
    }
    return count <= candidates ? sum : max(sum, of_row);
}

// Returns the place of the first candidate whose sum of weights exceeds (or reaches) a target; `candidates`: none does.
uint first_beyond(float target, bool reaches, Row row, float temperature, uint candidates) {
    precise float sum = 0.0;
    for (uint i = 0; i < candidates; i++) {
        sum += weight_of(logit_of(keys[i]), row.best, temperature);
        if (reaches ? sum >= target : sum > target) {
            return i;
        }
    }
    return candidates;
}

// Returns the place of the drawn candidate, or NONE if the candidates do not decide it. For one thread.
uint draw_candidate(Row row, uint candidates, uint vocab, float filter_weight, float draw_weight) {
    Kept kept = keep_ratio(Kept(min(row.top_k, vocab), true), row, candidates, vocab, row.min_p_before);
    if (row.top_p < 1.0) {
        if (!kept.is_known || (kept.count > candidates && kept.count < vocab)) {
            return NONE;
        }
        float whole = weight_of_first(kept.count, row, row.filter_temperature, candidates, vocab, filter_weight);
        uint last = first_beyond(row.top_p * whole, true, row, row.filter_temperature, candidates);
        if (last < candidates) {
            kept.count = min(kept.count, last + 1u);
        } else {
            kept.is_known = kept.count <= candidates;
        }
    }
    kept = keep_ratio(kept, row, candidates, vocab, row.min_p_after);
    if (!kept.is_known || (kept.count > candidates && kept.count < vocab)) {
        return NONE;
    }
    float whole = weight_of_first(kept.count, row, row.draw_temperature, candidates, vocab, draw_weight);
    uint place = first_beyond(row.u * whole, false, row, row.draw_temperature, candidates);
    if (place < min(kept.count, candidates)) {
        return place;
    }
    return kept.count <= candidates ? kept.count - 1u : NONE;
}

// Which weights of the tokens of a row are summed: 0 counts them, 1 filters, 2 draws.
float token_weight(uint kind, Row row, float z) {
    return kind == 0u ? 1.0 : weight_of(z, row.best, kind == 1u ? row.filter_temperature : row.draw_temperature);
}

// For SEARCHES thresholds from `first` on, `distance` apart: the weight of the tokens whose key is at least `least` and
// whose ordered logit (or, of those with the logit `same`, whose id) is at least the threshold.
void weigh_thresholds(uint kind, Row row, uint vocab, uvec2 least, bool in_ids, uint same, uint first, uint distance) {
    uint thread = gl_LocalInvocationID.x;
    precise float mine[SEARCHES];
    for (uint i = 0; i < SEARCHES; i++) {
        mine[i] = 0.0;
    }
    for (uint id = thread; id < vocab; id += THREADS) {
        float z = number(row.z_at + id);
        uvec2 key = key_of(z, id);
        if (is_better(least, key)) {
            continue;
        }
        float weight = token_weight(kind, row, z);
        for (uint i = 0; i < SEARCHES; i++) {
            uint threshold = first + i * distance;
            bool is_counted = in_ids ? key.x > same || (key.x == same && key.y >= threshold) : key.x >= threshold;
            mine[i] += is_counted ? weight : 0.0;
        }
    }
    barrier();
    for (uint i = 0; i < SEARCHES; i += 2u) {
        keys[i / 2u * THREADS + thread] = uvec2(floatBitsToUint(mine[i]), floatBitsToUint(mine[i + 1u]));
    }
    for (uint others = THREADS / 2u; others > 0u; others /= 2u) {
        barrier();
        if (thread < others) {
            for (uint at = thread; at < SEARCHES / 2u * THREADS; at += THREADS) {
                precise vec2 sums = uintBitsToFloat(keys[at]) + uintBitsToFloat(keys[at + others]);
                keys[at] = floatBitsToUint(sums);
            }
        }
    }
    barrier();
}

float reached(uint threshold) { return uintBitsToFloat(keys[threshold / 2u * THREADS][threshold & 1u]); }

// Returns the largest number in [low, high] at which the weight of the tokens above exceeds (or reaches) a target; `low`
// if none does.
uint search(uint kind, Row row, uint vocab, uvec2 least, bool in_ids, uint same, uint low, uint high, float target,
            bool reaches) {
    while (high > low) {
        uint distance = (high - low) / (SEARCHES + 1u) + 1u;
        weigh_thresholds(kind, row, vocab, least, in_ids, same, low + distance, distance);
        uint passed = 0u;
        while (passed < SEARCHES && low + (passed + 1u) * distance <= high &&
               low + (passed + 1u) * distance > low &&
               (reaches ? reached(passed) >= target : reached(passed) > target)) {
            passed++;
        }
        uint from = low + passed * distance;
        high = from + min(high - from, distance - 1u);
        low = from;
        barrier();
    }
    return low;
}

// Returns the weight of the tokens whose key is at least `least`.
float whole_weight(uint kind, Row row, uint vocab, uvec2 least) {
    weigh_thresholds(kind, row, vocab, least, false, 0u, 0u, 0u);
    return reached(0u);
}

// Returns the key of the token with this ordered logit; its y is 0 if there are several.
uvec2 only_key(Row row, uint vocab, uint order) {
    uint thread = gl_LocalInvocationID.x, count = 0u, last = 0u;
    for (uint id = thread; id < vocab; id += THREADS) {
        uvec2 key = key_of(number(row.z_at + id), id);
        count += key.x == order ? 1u : 0u;
        last = key.x == order ? key.y : last;
    }
    if (thread == 0u) {
        found_key = uvec2(0u);
    }
    barrier();
    atomicAdd(found_key.x, count);
    atomicMax(found_key.y, last);
    barrier();
    uvec2 found = found_key;
    barrier(); // all threads have read it
    return uvec2(order, found.x == 1u ? found.y : 0u);
}

// Returns the key of the first token at which the sum of weights exceeds (or reaches) a target.
uvec2 find_key(uint kind, Row row, uint vocab, uvec2 least, float target, bool reaches) {
    uint order = search(kind, row, vocab, least, false, 0u, least.x, key_of(row.best, 0u).x, target, reaches);
    if (order > least.x) { // the sum is reached there, and not above
        uvec2 only = only_key(row, vocab, order);
        if (only.y != 0u) {
            return only;
        }
    }
    uint lowest = order == least.x ? least.y : 0u;
    uint id = search(kind, row, vocab, least, true, order, max(lowest, ~(vocab - 1u)), ~0u, target, reaches);
    return uvec2(order, id);
}

// Returns the least key of those tokens that have at least this ratio to the best one.
uvec2 least_with_ratio(Row row, uint vocab, float ratio) {
    uint thread = gl_LocalInvocationID.x, mine = ~0u;
    for (uint id = thread; id < vocab; id += THREADS) {
        float z = number(row.z_at + id);
        if (!is_cut(z) && (z - row.best) / row.filter_temperature >= ratio) {
            mine = min(mine, key_of(z, id).x);
        }
    }
    barrier();
    if (thread == 0u) {
        found_key = uvec2(~0u, 0u);
    }
    barrier();
    atomicMin(found_key.x, mine);
    barrier();
    uvec2 found = found_key;
    barrier(); // all threads have read it
    return found;
}

uvec2 better_of(uvec2 a, uvec2 b) { return is_better(a, b) ? a : b; }

// Returns the id of the token that the row draws. For all threads.
uint draw_from_row(Row row, uint vocab) {
    uvec2 least = uvec2(key_of(uintBitsToFloat(NO_LOGIT), 0u).x + 1u, 0u); // the first key of an allowed token
    if (row.top_k < vocab) {
        least = better_of(least, find_key(0u, row, vocab, least, float(row.top_k), true));
    }
    if (!is_cut(row.min_p_before)) {
        least = better_of(least, least_with_ratio(row, vocab, row.min_p_before));
    }
    if (row.top_p < 1.0) {
        float whole = whole_weight(1u, row, vocab, least);
        least = better_of(least, find_key(1u, row, vocab, least, row.top_p * whole, true));
    }
    if (!is_cut(row.min_p_after)) {
        least = better_of(least, least_with_ratio(row, vocab, row.min_p_after));
    }
    float whole = whole_weight(2u, row, vocab, least);
    float below = uintBitsToFloat(floatBitsToUint(whole) - 1u); // the last token must exceed the target
    return id_of(find_key(2u, row, vocab, least, min(row.u * whole, below), false));
}
