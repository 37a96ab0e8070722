// Sums and maximums over the THREADS threads of a work group, as trees: an order that depends on nothing.

shared float of_threads[THREADS];

float sum_of_threads(float mine) {
    uint thread = gl_LocalInvocationID.x;
    barrier(); // the result before this one has been read
    of_threads[thread] = mine;
    for (uint others = THREADS / 2u; others > 0u; others /= 2u) {
        barrier();
        if (thread < others) {
            precise float sum = of_threads[thread] + of_threads[thread + others];
            of_threads[thread] = sum;
        }
    }
    barrier();
    return of_threads[0];
}

float largest_of_threads(float mine) {
    uint thread = gl_LocalInvocationID.x;
    barrier();
    of_threads[thread] = mine;
    for (uint others = THREADS / 2u; others > 0u; others /= 2u) {
        barrier();
        if (thread < others) {
            of_threads[thread] = max(of_threads[thread], of_threads[thread + others]);
        }
    }
    barrier();
    return of_threads[0];
}
