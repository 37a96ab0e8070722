// Sums over the THREADS threads of a work group, in their order.

shared uint sums[THREADS];

// The sum over the threads before this one; sums[THREADS - 1] becomes that of all.
uint sum_before(uint mine) {
    uint thread = gl_LocalInvocationID.x;
    barrier(); // the sums before have been read
    sums[thread] = mine;
    for (uint distance = 1u; distance < THREADS; distance *= 2u) {
        barrier();
        uint below = thread >= distance ? sums[thread - distance] : 0u;
        barrier();
        sums[thread] += below;
    }
    barrier();
    return sums[thread] - mine;
}
