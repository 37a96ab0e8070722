// Causal attention of a row over the keys and values of its sequence (kv_layout.glsl), those of the step included.
//
// out = sum over t of softmax(softcap(q . k[t] * scale)) v[t], for the positions t that the row sees. With sinks, the
// sum of the softmax of a head also contains exp(sink).
//
// A work group computes HEADS query heads of one key-value head of one row. WHOLE: all spans, one after the other, and
// writes `out`. Else one span: it writes the sums to scratch, [rows][heads][spans][value_dim + 2], and
// attention_merge.comp adds them. Both give the same bits. Groups: (kv_heads * ceil(ratio / HEADS), rows, spans);
// rows begin with `first_row`. With SHARED_ROWS, attention_rows.comp computes those of the rows that share keys.
//
// CHOSEN: t are places in the list of positions that a row has at `chosen`, float32 [rows][chosen_stride], at most `most`
// of them. Spans are cut along it, so that as long as all positions are chosen, the bits are those without a list.
//
// If a vector stands for several tokens, t are numbers of vectors, and `positions` has the number of the last one that a
// row sees, -1 if there is none: its result is 0. `sums_at`: float32 [rows][sums_stride], the logarithms of the sums of
// the softmax, or NONE.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 4) const bool WHOLE = true;
layout(constant_id = 5) const uint SHARED_ROWS = 0;
layout(constant_id = 6) const bool HAS_SINKS = false;
layout(constant_id = 7) const bool CHOSEN = false;
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
    uint chosen, chosen_stride, most;
};

shared uint listed[64]; // the positions that are seen at once
#define POSITION_OF(position) (CHOSEN ? listed[position % 64u] : position)
#include "attention_keys.glsl"
#include "attention_span.glsl"
#define HEADS_TO_ROTATE query
#include "hadamard.glsl"
#include "attention_spans.glsl"

// Reads the chosen positions at places [first, end), at most 64.
void list_positions(uint row, uint first, uint end) {
    uint at = min(first + gl_LocalInvocationID.x, end - 1u);
    listed[gl_LocalInvocationID.x] = uint(number(chosen + row * chosen_stride + at));
    barrier();
}

void add_span(Spans spans, uint span, uint row, uint seen) {
    uint end = min(spans.first + (span + 1u) * spans.size, seen);
    for (uint first = spans.first + span * spans.size; first < end; first += 64u) {
        if (CHOSEN) {
            list_positions(row, first, end);
        }
        add_positions(first, min(first + 64u, end), head_dim, value_dim, scale, softcap);
    }
}

void main() {
    uint row = first_row + gl_WorkGroupID.y, thread = gl_LocalInvocationID.x;
    if (row >= work[counts]) {
        return;
    }
    if (SHARED_ROWS != 0u && shares_keys(row / SHARED_ROWS * SHARED_ROWS, SHARED_ROWS)) {
        return;
    }
    uint seen = min(work[positions + row] + 1u, most);
    Spans spans = spans_of(seen, window);
    if (!WHOLE && gl_WorkGroupID.z >= spans.count) {
        return;
    }
    table_row = table_at(table) + work[sequences + row] * work[table + 1u];
    words_of_head = head_words(head_dim);
    uint in_ratio = gl_WorkGroupID.x / kv_heads * HEADS;
    uint first_head = (gl_WorkGroupID.x % kv_heads) * ratio + in_ratio;
    uint num_heads = min(HEADS, ratio - in_ratio);
    load_query(q + row * q_stride + first_head * head_dim, head_dim, num_heads);
    if (KV == 4u) {
        rotate_heads(HEADS, DIMS * 64u, head_dim);
    }
    if (!WHOLE) {
        begin_span();
        barrier();
        add_span(spans, gl_WorkGroupID.z, row, seen);
        for (uint h = 0; h < num_heads; h++) {
            uint at = scratch + ((row * kv_heads * ratio + first_head + h) * most_spans + gl_WorkGroupID.z) * (value_dim + 2u);
            for (uint i = 0; i < DIMS; i++) {
                if (i * 64u + thread < value_dim) {
                    put(at + i * 64u + thread, sums[h][i]);
                }
            }
            put(at + value_dim, best[h]);
            put(at + value_dim + 1u, totals[h]);
        }
        return;
    }
    Merged all_spans[HEADS][DIMS];
    for (uint h = 0; h < HEADS; h++) {
        for (uint i = 0; i < DIMS; i++) {
            all_spans[h][i] = Merged(LOWEST, 0.0, 0.0);
        }
    }
    for (uint span = 0; span < spans.count; span++) {
        begin_span();
        barrier();
        add_span(spans, span, row, seen);
        for (uint h = 0; h < HEADS; h++) {
            for (uint i = 0; i < DIMS; i++) {
                all_spans[h][i] = merged(all_spans[h][i], best[h], totals[h], sums[h][i]);
            }
        }
    }
    for (uint h = 0; h < num_heads; h++) {
        float sink = HAS_SINKS ? uintBitsToFloat(sinks[sink_at + first_head + h]) : 0.0;
        if (sums_at != NONE && thread == 0u) {
            work[sums_at + row * sums_stride + first_head + h] = log_sum_of(all_spans[h][0], HAS_SINKS, sink);
        }
        for (uint i = 0; i < DIMS; i++) {
            if (i * 64u + thread < value_dim) {
                query[(h * DIMS + i) * 64u + thread] = result_of(all_spans[h][i], HAS_SINKS, sink);
            }
        }
    }
    if (KV == 4u) {
        rotate_heads(HEADS, DIMS * 64u, head_dim);
    }
    for (uint h = 0; h < num_heads; h++) {
        for (uint i = thread; i < value_dim; i += 64u) {
            put(out_at + row * out_stride + (first_head + h) * value_dim + i, query[h * DIMS * 64u + i]);
        }
    }
}
