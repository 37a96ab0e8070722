// The sums of one query row over some positions: for each of HEADS query heads of a key-value head, the largest score
// m, the total l of exp(score - m), and the sum of exp(score - m) * value. Positions are seen 64 at a time, a thread
// each; then a thread sums the values of every 64th element. An order that depends on the positions alone.
//
// The includer defines `float key(uint position, uint element)` and `float value(uint position, uint element)`.

layout(constant_id = 1) const uint HEADS = 1;
layout(constant_id = 2) const uint DIMS = 1; // head_dim / 64, rounded up
layout(constant_id = 3) const bool CAPPED = false;

const float LOWEST = -3.4028234663852886e38;

shared float query[HEADS * DIMS * 64u];
shared float scores[HEADS * 64u];
shared float best[HEADS], totals[HEADS], corrections[HEADS];
float sums[HEADS][DIMS];

void begin_span() {
    barrier(); // the results of the span before it have been read
    if (gl_LocalInvocationID.x < HEADS) {
        best[gl_LocalInvocationID.x] = LOWEST;
        totals[gl_LocalInvocationID.x] = 0.0;
    }
    for (uint h = 0; h < HEADS; h++) {
        for (uint i = 0; i < DIMS; i++) {
            sums[h][i] = 0.0;
        }
    }
}

void load_query(uint from, uint head_dim, uint num_heads) {
    for (uint i = gl_LocalInvocationID.x; i < HEADS * head_dim; i += 64u) {
        query[(i / head_dim) * DIMS * 64u + i % head_dim] = i / head_dim < num_heads ? number(from + i) : 0.0;
    }
    barrier();
}

void score_position(uint position, bool is_seen, uint head_dim, float scale, float softcap) {
    precise float products[HEADS];
    for (uint h = 0; h < HEADS; h++) {
        products[h] = 0.0;
    }
    for (uint i = 0; i < head_dim && is_seen; i++) {
        float k = key(position, i);
        for (uint h = 0; h < HEADS; h++) {
            products[h] = fma(query[h * DIMS * 64u + i], k, products[h]);
        }
    }
    for (uint h = 0; h < HEADS; h++) {
        precise float score = products[h] * scale;
        if (CAPPED) {
            score = softcap * tanh_of(score / softcap);
        }
        scores[h * 64u + gl_LocalInvocationID.x] = is_seen ? score : LOWEST;
    }
}

// Adds positions [first, last), at most 64.
void add_positions(uint first, uint last, uint head_dim, uint value_dim, float scale, float softcap) {
    uint thread = gl_LocalInvocationID.x, count = last - first;
    score_position(first + thread, thread < count, head_dim, scale, softcap);
    barrier();
    if (thread < HEADS) {
        float largest = best[thread];
        for (uint i = 0; i < count; i++) {
            largest = max(largest, scores[thread * 64u + i]);
        }
        corrections[thread] = best[thread] == LOWEST ? 0.0 : exp(best[thread] - largest);
        best[thread] = largest;
    }
    barrier();
    for (uint h = 0; h < HEADS; h++) {
        precise float weight = thread < count ? exp(scores[h * 64u + thread] - best[h]) : 0.0;
        scores[h * 64u + thread] = weight;
    }
    barrier();
    if (thread < HEADS) {
        precise float total = totals[thread] * corrections[thread];
        for (uint i = 0; i < count; i++) {
            total += scores[thread * 64u + i];
        }
        totals[thread] = total;
    }
    for (uint i = 0; i < DIMS; i++) {
        uint element = i * 64u + thread;
        precise float mine[HEADS];
        for (uint h = 0; h < HEADS; h++) {
            mine[h] = sums[h][i] * corrections[h];
        }
        for (uint j = 0; j < count && element < value_dim; j++) {
            float v = value(first + j, element);
            for (uint h = 0; h < HEADS; h++) {
                mine[h] = fma(scores[h * 64u + j], v, mine[h]);
            }
        }
        for (uint h = 0; h < HEADS; h++) {
            sums[h][i] = mine[h];
        }
    }
    barrier();
}
