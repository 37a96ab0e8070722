// Sort keys in shared memory, the best one first: a bitonic network (Batcher 1968). Or find the best one.

shared uvec2 keys[PART];

// The first `count` keys; those after them up to a power of two must be 0.
void sort_keys(uint count) {
    uint num_keys = 2u;
    while (num_keys < count) {
        num_keys *= 2u;
    }
    for (uint size = 2u; size <= num_keys; size *= 2u) {
        for (uint distance = size / 2u; distance > 0u; distance /= 2u) {
            barrier();
            for (uint i = gl_LocalInvocationID.x; i < num_keys / 2u; i += THREADS) {
                uint low = 2u * i - (i & (distance - 1u));
                uint high = low + distance;
                uvec2 a = keys[low], b = keys[high];
                bool is_descending = (low & size) == 0u;
                if (is_better(b, a) == is_descending) {
                    keys[low] = b;
                    keys[high] = a;
                }
            }
        }
    }
    barrier();
}

uvec2 best_of_threads(uvec2 mine) {
    uint thread = gl_LocalInvocationID.x;
    keys[thread] = mine;
    for (uint others = THREADS / 2u; others > 0u; others /= 2u) {
        barrier();
        if (thread < others && is_better(keys[thread + others], keys[thread])) {
            keys[thread] = keys[thread + others];
        }
    }
    barrier();
    return keys[0];
}
