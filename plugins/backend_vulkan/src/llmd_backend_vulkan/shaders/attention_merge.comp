// Add the sums of the spans of a row (attention.comp), and divide; rotate the result if values are. Groups: (heads, rows).
// `most` is the length of a list of chosen positions, if there is one; attention.comp says what `sums_at` is.

#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(constant_id = 1) const bool HAS_SINKS = false;
#include "kv_layout.glsl"
#include "work.glsl"
layout(binding = 1) readonly buffer Sinks { uint sinks[]; };
layout(push_constant) uniform Push {
    uint counts, out_at, out_stride, positions, value_dim, window, scratch, most_spans, sink_at, most;
    uint sums_at, sums_stride;
};
#include "attention_spans.glsl"
shared float results[576];
#define HEADS_TO_ROTATE results
#include "hadamard.glsl"

void main() {
    uint row = gl_WorkGroupID.y, head = gl_WorkGroupID.x;
    if (row >= work[counts]) {
        return;
    }
    Spans spans = spans_of(min(work[positions + row] + 1u, most), window);
    uint at = scratch + (row * gl_NumWorkGroups.x + head) * most_spans * (value_dim + 2u);
    for (uint element = gl_LocalInvocationID.x; element < value_dim; element += 64u) {
        Merged all_spans = Merged(-3.4028234663852886e38, 0.0, 0.0);
        for (uint span = 0; span < spans.count; span++) {
            uint of_span = at + span * (value_dim + 2u);
            float best = number(of_span + value_dim), total = number(of_span + value_dim + 1u);
            all_spans = merged(all_spans, best, total, number(of_span + element));
        }
        float sink = HAS_SINKS ? uintBitsToFloat(sinks[sink_at + head]) : 0.0;
        results[element] = result_of(all_spans, HAS_SINKS, sink);
        if (sums_at != NONE && element == 0u) {
            work[sums_at + row * sums_stride + head] = log_sum_of(all_spans, HAS_SINKS, sink);
        }
    }
    if (KV == 4u) {
        rotate_heads(1u, 576u, value_dim);
    }
    for (uint element = gl_LocalInvocationID.x; element < value_dim; element += 64u) {
        put(out_at + row * out_stride + head * value_dim + element, results[element]);
    }
}
