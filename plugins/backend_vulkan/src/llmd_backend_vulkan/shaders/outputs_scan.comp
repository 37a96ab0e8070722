// The best keys and the sums of a part of a row. Groups: (parts, rows).
//
// keys_at: [rows][parts][kept][2], raw_keys_at: the same of the raw logits, if some are wanted; sums_at:
// [rows][parts][SUM_WORDS].

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 128) in;
#include "work.glsl"
#include "outputs.glsl"
#include "outputs_sort.glsl"
#include "totals.glsl"
layout(push_constant) uniform Push {
    uint selection, raw, edited, stride, vocab, kept, raw_kept, keys_at, raw_keys_at, sums_at;
};

void sort_part(uint logits, uint first_id, uint most, uint to) {
    for (uint i = gl_LocalInvocationID.x; i < PART; i += THREADS) {
        uint id = first_id + i;
        keys[i] = id < vocab ? key_of(number(logits + id), id) : uvec2(0u, ~id);
    }
    sort_keys(min(vocab - first_id, PART));
    for (uint i = gl_LocalInvocationID.x; i < most; i += THREADS) {
        work[to + 2u * i] = keys[i].x;
        work[to + 2u * i + 1u] = keys[i].y;
    }
    barrier();
}

void find_best(uint logits, uint first_id, uint to) {
    uvec2 mine = uvec2(0u);
    for (uint id = first_id + gl_LocalInvocationID.x; id < min(first_id + PART, vocab); id += THREADS) {
        uvec2 key = key_of(number(logits + id), id);
        mine = is_better(key, mine) ? key : mine;
    }
    uvec2 best = best_of_threads(mine);
    if (gl_LocalInvocationID.x == 0u) {
        work[to] = best.x;
        work[to + 1u] = best.y;
    }
}

void main() {
    uint row = gl_WorkGroupID.y, part = gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
    if (row >= work[selection]) {
        return;
    }
    uint of_row = selection + HEADER_WORDS + row * ROW_WORDS;
    uint place = row * num_parts(vocab) + part, first_id = part * PART;
    uint z_at = edited + row * stride, raw_at = raw + row * stride;
    if (needs_best_only(of_row)) {
        find_best(z_at, first_id, keys_at + place * kept * 2u);
        return;
    }
    sort_part(z_at, first_id, kept, keys_at + place * kept * 2u);
    float best = logit_of(keys[0]);
    barrier(); // all threads have read it
    if (work[of_row + DESCRIBED] != 0u && work[selection + 1u] > 0u) {
        sort_part(raw_at, first_id, raw_kept, raw_keys_at + place * raw_kept * 2u);
    }
    float temperature = number(of_row + TEMPERATURE);
    float filter_temperature = number(of_row + FILTER_TEMPERATURE), draw_temperature = number(of_row + DRAW_TEMPERATURE);
    precise float raw_best = uintBitsToFloat(NO_LOGIT), total = 0.0, count = 0.0;
    for (uint id = first_id + thread; id < min(first_id + PART, vocab); id += THREADS) {
        float z = number(z_at + id);
        raw_best = max(raw_best, number(raw_at + id));
        if (!is_cut(z)) {
            total += z;
            count += 1.0;
        }
    }
    raw_best = largest_of_threads(raw_best);
    total = sum_of_threads(total);
    count = sum_of_threads(count);
    precise float mean = total / max(count, 1.0);
    precise float weight = 0.0, weighted = 0.0, squares = 0.0, filtered = 0.0, drawn = 0.0, raw_weight = 0.0;
    for (uint id = first_id + thread; id < min(first_id + PART, vocab); id += THREADS) {
        float z = number(z_at + id);
        raw_weight += weight_of(number(raw_at + id), raw_best, 1.0);
        if (!is_cut(z)) {
            precise float share = weight_of(z, best, temperature), deviation = z - mean;
            weight += share;
            weighted += share * ((z - best) / temperature);
            squares += deviation * deviation;
            filtered += weight_of(z, best, filter_temperature);
            drawn += weight_of(z, best, draw_temperature);
        }
    }
    weight = sum_of_threads(weight);
    weighted = sum_of_threads(weighted);
    squares = sum_of_threads(squares);
    filtered = sum_of_threads(filtered);
    drawn = sum_of_threads(drawn);
    raw_weight = sum_of_threads(raw_weight);
    if (thread == 0u) {
        uint to = sums_at + place * SUM_WORDS;
        put(to + BEST, best);
        put(to + COUNT, count);
        put(to + TOTAL, total);
        put(to + WEIGHT, weight);
        put(to + WEIGHTED, weighted);
        put(to + SQUARES, squares);
        put(to + FILTER_WEIGHT, filtered);
        put(to + DRAW_WEIGHT, drawn);
        put(to + RAW_BEST, raw_best);
        put(to + RAW_WEIGHT, raw_weight);
    }
}
