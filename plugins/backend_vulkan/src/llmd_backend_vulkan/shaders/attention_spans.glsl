// How the positions that a row sees are cut into at most 16 spans: a function of their number and the window alone.

#include "infinity.glsl"

struct Spans {
    uint first;  // the first position that is seen
    uint size;   // positions of a span
    uint count;  // spans
};

const uint MOST_SPANS = 16;
const uint SHORTEST_SPAN = 128;

// The spans of positions [0, end) that are in the window; none if the end is 0.
Spans spans_of(uint end, uint window) {
    uint first = window != 0u && end > window ? end - window : 0u;
    uint seen = end - first, size = SHORTEST_SPAN;
    while (size * MOST_SPANS < seen) {
        size *= 2u;
    }
    return Spans(first, size, (seen + size - 1u) / size);
}

// The sums of several spans, added in order. Both kernels that add spans do so with these operations.
struct Merged {
    float best, total, sum;
};

Merged merged(Merged before, float best, float total, float sum) {
    float largest = max(before.best, best);
    float old = before.best == -3.4028234663852886e38 ? 0.0 : exp(before.best - largest);
    float fresh = exp(best - largest);
    precise float new_total = before.total * old;
    new_total = fma(total, fresh, new_total);
    precise float new_sum = before.sum * old;
    new_sum = fma(sum, fresh, new_sum);
    return Merged(largest, new_total, new_sum);
}

// The weighted mean of values; 0 if there are none. With a sink, the sum of weights also contains exp(sink), to which no
// value belongs.
float result_of(Merged all_spans, bool has_sink, float sink) {
    if (!has_sink) {
        precise float mean = all_spans.sum / all_spans.total;
        return all_spans.total == 0.0 ? 0.0 : mean;
    }
    float largest = max(all_spans.best, sink);
    float scaled = exp(all_spans.best - largest);
    precise float total_with_sink = fma(all_spans.total, scaled, exp(sink - largest));
    precise float mean = all_spans.sum * scaled / total_with_sink;
    return mean;
}

// The bits of the logarithm of the sum of weights, that of the sink included; of minus infinity if there are none.
uint log_sum_of(Merged all_spans, bool has_sink, float sink) {
    if (!has_sink && all_spans.total == 0.0) {
        return MINUS_INFINITY;
    }
    float largest = has_sink ? max(all_spans.best, sink) : all_spans.best;
    precise float total = all_spans.total;
    if (has_sink) {
        total = fma(total, exp(all_spans.best - largest), exp(sink - largest));
    }
    precise float sum = largest + log(total);
    return floatBitsToUint(sum);
}
