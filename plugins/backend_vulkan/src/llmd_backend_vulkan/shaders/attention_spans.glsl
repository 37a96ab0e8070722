// How the positions that a row sees are cut into at most 16 spans: a function of the position and the window alone.

struct Spans {
    uint first;  // the first position that is seen
    uint size;   // positions of a span
    uint count;  // spans
};

const uint MOST_SPANS = 16;
const uint SHORTEST_SPAN = 128;

Spans spans_of(uint position, uint window) {
    uint first = window != 0u && position >= window ? position + 1u - window : 0u;
    uint seen = position + 1u - first, size = SHORTEST_SPAN;
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

// The weighted mean of values. With a sink, the sum of weights also contains exp(sink), to which no value belongs.
float result_of(Merged all_spans, bool has_sink, float sink) {
    if (!has_sink) {
        precise float mean = all_spans.sum / all_spans.total;
        return mean;
    }
    float largest = max(all_spans.best, sink);
    float scaled = exp(all_spans.best - largest);
    precise float total_with_sink = fma(all_spans.total, scaled, exp(sink - largest));
    precise float mean = all_spans.sum * scaled / total_with_sink;
    return mean;
}
