// The candidates, the sums and the token of a row. Groups: (1, rows).
//
// A record has RECORD_START words of sums, then ids, edited and raw logits of the candidates, ids and logits of the best
// raw logits. Tokens and records are written to memory of the host: tokens [rows] from 0 on, records from
// `records_at` on, in order of the rows.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 128) in;
layout(binding = 1) buffer Results { uint results[]; };
#include "work.glsl"
#include "outputs.glsl"
#include "outputs_sort.glsl"
#include "totals.glsl"
layout(push_constant) uniform Push {
    uint selection, raw, edited, stride, vocab, kept, raw_kept, keys_at, raw_keys_at, sums_at, records_at, record_words;
};
#include "outputs_draw.glsl"

const uint RECORD_START = 8;

// Leaves the best `most` keys of all parts at the beginning of `keys`.
void gather_best(uint from, uint most) {
    uint thread = gl_LocalInvocationID.x, total = num_parts(vocab) * most, taken = 0u;
    for (bool is_first = true; is_first || taken < total; is_first = false) {
        uint begin = is_first ? 0u : most;
        barrier();
        for (uint i = begin + thread; i < PART; i += THREADS) {
            uint at = taken + i - begin;
            keys[i] = at < total ? uvec2(work[from + 2u * at], work[from + 2u * at + 1u]) : uvec2(0u);
        }
        taken += PART - begin;
        if (num_parts(vocab) > 1u) {
            sort_keys(min(begin + total, PART));
        } else {
            barrier();
        }
    }
}

// The best key of all parts, each of which has left its best one first.
uvec2 best_of_parts(uint from) {
    uvec2 mine = uvec2(0u);
    for (uint part = gl_LocalInvocationID.x; part < num_parts(vocab); part += THREADS) {
        uint at = from + 2u * kept * part;
        uvec2 key = uvec2(work[at], work[at + 1u]);
        mine = is_better(key, mine) ? key : mine;
    }
    return best_of_threads(mine);
}

// A sum over the parts of a row, in which each counts with exp((its best - the best) / temperature).
float sum_of_parts(uint sums, uint word, uint best_word, float best, float temperature) {
    precise float mine = 0.0;
    for (uint part = gl_LocalInvocationID.x; part < num_parts(vocab); part += THREADS) {
        uint at = sums + part * SUM_WORDS;
        mine += number(at + word) * weight_of(number(at + best_word), best, temperature);
    }
    return sum_of_threads(mine);
}

float plain_sum(uint sums, uint word) {
    precise float mine = 0.0;
    for (uint part = gl_LocalInvocationID.x; part < num_parts(vocab); part += THREADS) {
        mine += number(sums + part * SUM_WORDS + word);
    }
    return sum_of_threads(mine);
}

// The sum of share * (z - best) / temperature.
float weighted_of_parts(uint sums, float best, float temperature) {
    precise float mine = 0.0;
    for (uint part = gl_LocalInvocationID.x; part < num_parts(vocab); part += THREADS) {
        uint at = sums + part * SUM_WORDS;
        float of_part = number(at + BEST);
        if (!is_cut(of_part)) {
            precise float below = (of_part - best) / temperature;
            mine += exp(below) * (number(at + WEIGHTED) + number(at + WEIGHT) * below);
        }
    }
    return sum_of_threads(mine);
}

float squares_of_parts(uint sums, float mean) {
    precise float mine = 0.0;
    for (uint part = gl_LocalInvocationID.x; part < num_parts(vocab); part += THREADS) {
        uint at = sums + part * SUM_WORDS;
        float count = number(at + COUNT);
        precise float deviation = number(at + TOTAL) / max(count, 1.0) - mean;
        mine += number(at + SQUARES) + count * deviation * deviation;
    }
    return sum_of_threads(mine);
}

void put_result(uint at, float value) { results[at] = floatBitsToUint(value); }

void write_sums(uint of_row, uint sums, uint record, uint raw_at, float best) {
    float temperature = number(of_row + TEMPERATURE);
    float raw_best = uintBitsToFloat(NO_LOGIT);
    for (uint part = gl_LocalInvocationID.x; part < num_parts(vocab); part += THREADS) {
        raw_best = max(raw_best, number(sums + part * SUM_WORDS + RAW_BEST));
    }
    raw_best = largest_of_threads(raw_best);
    float raw_weight = sum_of_parts(sums, RAW_WEIGHT, RAW_BEST, raw_best, 1.0);
    float weight = sum_of_parts(sums, WEIGHT, BEST, best, temperature);
    float weighted = weighted_of_parts(sums, best, temperature);
    float count = plain_sum(sums, COUNT);
    float squares = squares_of_parts(sums, plain_sum(sums, TOTAL) / max(count, 1.0));
    if (gl_LocalInvocationID.x != 0u) {
        return;
    }
    bool is_allowed = count > 0.0;
    put_result(record, raw_best + log(raw_weight));
    put_result(record + 1u, is_allowed ? best / temperature + log(weight) : uintBitsToFloat(NO_LOGIT));
    put_result(record + 2u, is_allowed ? log(weight) - weighted / weight : 0.0);
    put_result(record + 3u, is_allowed ? sqrt(squares / count) : 0.0);
    results[record + 4u] = uint(count);
    uint target = work[of_row + TARGET];
    put_result(record + 5u, target == NONE ? 0.0 : number(raw_at + target));
}

void main() {
    uint row = gl_WorkGroupID.y, thread = gl_LocalInvocationID.x;
    if (row >= work[selection]) {
        return;
    }
    uint of_row = selection + HEADER_WORDS + row * ROW_WORDS, parts = num_parts(vocab);
    uint sums = sums_at + row * parts * SUM_WORDS;
    uint raw_at = raw + row * stride, z_at = edited + row * stride;
    uint of_keys = keys_at + row * parts * kept * 2u;
    if (needs_best_only(of_row)) {
        uint best_id = id_of(best_of_parts(of_keys));
        if (thread == 0u) {
            results[row] = best_id;
        }
        return;
    }
    uint record = records_at + row * record_words;
    bool is_described = work[of_row + DESCRIBED] != 0u;
    uint wanted = work[selection + 1u];
    if (is_described && wanted > 0u) {
        gather_best(raw_keys_at + row * parts * raw_kept * 2u, raw_kept);
        for (uint i = thread; i < wanted; i += THREADS) {
            uint at = record + RECORD_START + 3u * kept + i;
            results[at] = id_of(keys[i]);
            put_result(at + raw_kept, number(raw_at + id_of(keys[i])));
        }
        barrier();
    }
    gather_best(of_keys, kept);
    float best = logit_of(keys[0]);
    if (is_described) {
        for (uint i = thread; i < kept; i += THREADS) {
            uint id = id_of(keys[i]);
            results[record + RECORD_START + i] = id;
            put_result(record + RECORD_START + kept + i, number(z_at + id));
            put_result(record + RECORD_START + 2u * kept + i, number(raw_at + id));
        }
        write_sums(of_row, sums, record, raw_at, best);
    }
    uint token = id_of(keys[0]);
    if (work[of_row + KIND] == SAMPLED && is_finite(best)) {
        Row drawn = row_of(of_row, z_at, best);
        float filter_weight = sum_of_parts(sums, FILTER_WEIGHT, BEST, best, drawn.filter_temperature);
        float draw_weight = sum_of_parts(sums, DRAW_WEIGHT, BEST, best, drawn.draw_temperature);
        if (thread == 0u) {
            drawn_place = draw_candidate(drawn, kept, vocab, filter_weight, draw_weight);
        }
        barrier();
        token = drawn_place == NONE ? draw_from_row(drawn, vocab) : id_of(keys[drawn_place]);
    }
    if (thread == 0u) {
        results[row] = token;
    }
}
