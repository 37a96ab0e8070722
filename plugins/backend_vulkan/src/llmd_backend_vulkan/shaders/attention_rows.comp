// attention.comp for ROWS rows of one sequence that see all positions before them: the same bits.
//
// A work group computes HEADS query heads of one key-value head for ROWS rows: QUERIES queries, which share the keys and
// values. A thread computes the scores of one position, then sums one element of values (DIMS of them in wide heads), so
// each key and value is read and decoded once for all queries. Rows whose tile has another sequence are left to
// attention.comp. Groups: (kv_heads * ceil(ratio / HEADS), rows / ROWS); rows begin with `first_row`, a multiple of ROWS.
//
// With 16 queries of 128 elements: 16 multiply-adds for a key or value that is read (4 without ROWS, at 4 query heads),
// 12.5 KiB of shared memory, and some 100 registers (sums of a span, of all spans, of 64 positions). A work group has 64
// threads, so 2 to 8 of them fit in what a compute unit has of shared memory (32 to 100 KiB).

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint HEADS = 1;
layout(constant_id = 2) const uint DIMS = 1; // head_dim / 64, rounded up
layout(constant_id = 3) const bool CAPPED = false;
layout(constant_id = 4) const uint ROWS = 4;
layout(constant_id = 5) const bool HAS_SINKS = false;
#include "activations.glsl"
#include "halves.glsl"
#include "kv_layout.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Pool { uint pool[]; };
layout(binding = 2) readonly buffer Sinks { uint sinks[]; };
layout(push_constant) uniform Push {
    uint counts, q, q_stride, out_at, out_stride, positions, sequences, table, pool_at, block_words;
    uint kv_heads, head_dim, ratio, window, scratch, most_spans;
    float scale, softcap;
    uint first_row, sink_at, value_dim, value_kind;
    uint vector_bits, sums_at, sums_stride;
};

#define POSITION_OF(position) position
#include "attention_keys.glsl"
#include "attention_spans.glsl"

const uint QUERIES = HEADS * ROWS; // of query n, the row is n / HEADS and the head n % HEADS
const uint WIDTH = DIMS * 64u;
const float LOWEST = -3.4028234663852886e38;

shared float query[QUERIES * WIDTH];
#define HEADS_TO_ROTATE query
#include "hadamard.glsl"
shared float scores[QUERIES * 64u];
shared float best[QUERIES], totals[QUERIES], corrections[QUERIES];      // of the span
shared float all_best[QUERIES], all_totals[QUERIES];                    // of the spans before
shared float old_factors[QUERIES], new_factors[QUERIES];
shared uint ends[ROWS], sizes[ROWS]; // of a row, the positions that it sees, and those of a span
float sums[QUERIES][DIMS], all_sums[QUERIES][DIMS];

// How many of the 64 positions from one on a query sees.
uint count_from(uint first, uint n) { return min(max(ends[n / HEADS], first) - first, 64u); }

// Whether the span of a query ends before a position; at the end of its positions, always.
bool ends_span(uint first, uint n, bool is_end) {
    return is_end || (first != 0u && first % sizes[n / HEADS] == 0u && first < ends[n / HEADS]);
}

// Adds the sums of spans that end to those before: merged() of attention_spans.glsl, once for all elements.
void end_spans(uint first, bool is_end) {
    uint thread = gl_LocalInvocationID.x;
    if (thread < QUERIES && ends_span(first, thread, is_end)) {
        float largest = max(all_best[thread], best[thread]);
        old_factors[thread] = all_best[thread] == LOWEST ? 0.0 : exp(all_best[thread] - largest);
        new_factors[thread] = exp(best[thread] - largest);
        precise float total = all_totals[thread] * old_factors[thread];
        total = fma(totals[thread], new_factors[thread], total);
        all_totals[thread] = total;
        all_best[thread] = largest;
        best[thread] = LOWEST;
        totals[thread] = 0.0;
    }
    barrier();
    for (uint n = 0; n < QUERIES; n++) {
        for (uint i = 0; i < DIMS && ends_span(first, n, is_end); i++) {
            precise float sum = all_sums[n][i] * old_factors[n];
            sum = fma(sums[n][i], new_factors[n], sum);
            all_sums[n][i] = sum;
            sums[n][i] = 0.0;
        }
    }
    barrier();
}

void score(uint position, bool is_seen) {
    precise float products[QUERIES];
    for (uint n = 0; n < QUERIES; n++) {
        products[n] = 0.0;
    }
    for (uint i = 0; i < head_dim && is_seen; i++) {
        float k = key(position, i);
        for (uint n = 0; n < QUERIES; n++) {
            products[n] = fma(query[n * WIDTH + i], k, products[n]);
        }
    }
    for (uint n = 0; n < QUERIES; n++) {
        precise float found = products[n] * scale;
        if (CAPPED) {
            found = softcap * tanh_of(found / softcap);
        }
        scores[n * 64u + gl_LocalInvocationID.x] = position < ends[n / HEADS] ? found : LOWEST;
    }
}

// Adds 64 positions from one on, or those that a query sees.
void add_positions(uint first, uint most) {
    uint thread = gl_LocalInvocationID.x;
    score(first + thread, first + thread < most);
    barrier();
    uint mine = thread < QUERIES ? count_from(first, thread) : 0u;
    if (mine != 0u) {
        float largest = best[thread];
        for (uint i = 0; i < mine; i++) {
            largest = max(largest, scores[thread * 64u + i]);
        }
        corrections[thread] = best[thread] == LOWEST ? 0.0 : exp(best[thread] - largest);
        best[thread] = largest;
    }
    barrier();
    for (uint n = 0; n < QUERIES; n++) {
        precise float weight = thread < count_from(first, n) ? exp(scores[n * 64u + thread] - best[n]) : 0.0;
        scores[n * 64u + thread] = weight;
    }
    barrier();
    if (mine != 0u) {
        precise float total = totals[thread] * corrections[thread];
        for (uint i = 0; i < mine; i++) {
            total += scores[thread * 64u + i];
        }
        totals[thread] = total;
    }
    for (uint i = 0; i < DIMS; i++) {
        uint element = i * 64u + thread;
        precise float of_queries[QUERIES];
        for (uint n = 0; n < QUERIES; n++) {
            of_queries[n] = sums[n][i];
            if (count_from(first, n) != 0u) {
                of_queries[n] = of_queries[n] * corrections[n];
            }
        }
        for (uint j = 0; j < 64u && first + j < most && element < value_dim; j++) {
            float v = value(first + j, element);
            for (uint n = 0; n < QUERIES; n++) {
                if (first + j < ends[n / HEADS]) {
                    of_queries[n] = fma(scores[n * 64u + j], v, of_queries[n]);
                }
            }
        }
        for (uint n = 0; n < QUERIES; n++) {
            sums[n][i] = of_queries[n];
        }
    }
    barrier();
}

void main() {
    uint own_row = first_row + gl_WorkGroupID.y * ROWS, thread = gl_LocalInvocationID.x;
    if (own_row >= work[counts] || !shares_keys(own_row, ROWS)) {
        return;
    }
    table_row = table_at(table) + work[sequences + own_row] * work[table + 1u];
    words_of_head = head_words(head_dim);
    uint in_ratio = gl_WorkGroupID.x / kv_heads * HEADS;
    uint first_head = (gl_WorkGroupID.x % kv_heads) * ratio + in_ratio;
    uint num_heads = min(HEADS, ratio - in_ratio), most = 0;
    for (uint row = 0; row < ROWS; row++) {
        most = max(most, work[positions + own_row + row] + 1u);
    }
    if (thread < ROWS) {
        uint seen = work[positions + own_row + thread] + 1u;
        ends[thread] = seen;
        sizes[thread] = spans_of(seen, 0u).size;
    }
    for (uint at = thread; at < QUERIES * WIDTH; at += 64u) {
        uint n = at / WIDTH, head = n % HEADS, element = at % WIDTH;
        uint from = q + (own_row + n / HEADS) * q_stride + (first_head + head) * head_dim + element;
        query[at] = head < num_heads && element < head_dim ? number(from) : 0.0;
    }
    if (thread < QUERIES) {
        best[thread] = all_best[thread] = LOWEST;
        totals[thread] = all_totals[thread] = 0.0;
    }
    for (uint n = 0; n < QUERIES; n++) {
        for (uint i = 0; i < DIMS; i++) {
            sums[n][i] = all_sums[n][i] = 0.0;
        }
    }
    barrier();
    if (KV == 4u) {
        rotate_heads(QUERIES, WIDTH, head_dim);
    }
    for (uint first = 0; first < most; first += 64u) {
        if (first % SHORTEST_SPAN == 0u && first != 0u) {
            end_spans(first, false);
        }
        add_positions(first, most);
    }
    end_spans(most, true);
    if (sums_at != NONE && thread < QUERIES && thread % HEADS < num_heads) {
        uint head = first_head + thread % HEADS;
        float sink = HAS_SINKS ? uintBitsToFloat(sinks[sink_at + head]) : 0.0;
        Merged of_query = Merged(all_best[thread], all_totals[thread], 0.0);
        work[sums_at + (own_row + thread / HEADS) * sums_stride + head] = log_sum_of(of_query, HAS_SINKS, sink);
    }
    for (uint n = 0; n < QUERIES; n++) {
        float sink = HAS_SINKS ? uintBitsToFloat(sinks[sink_at + first_head + min(n % HEADS, num_heads - 1u)]) : 0.0;
        for (uint i = 0; i < DIMS; i++) {
            Merged merged_spans = Merged(all_best[n], all_totals[n], all_sums[n][i]);
            query[n * WIDTH + i * 64u + thread] = result_of(merged_spans, HAS_SINKS, sink);
        }
    }
    barrier();
    if (KV == 4u) {
        rotate_heads(QUERIES, WIDTH, head_dim);
    }
    for (uint at = thread; at < QUERIES * WIDTH; at += 64u) {
        uint n = at / WIDTH, head = n % HEADS, element = at % WIDTH;
        if (head < num_heads && element < value_dim) {
            put(out_at + (own_row + n / HEADS) * out_stride + (first_head + head) * value_dim + element, query[at]);
        }
    }
}
