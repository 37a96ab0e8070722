// Sums, and largest numbers, over the 64 threads of a work group: added as a tree, an order that depends on nothing.

shared float sums[64];

float total(float mine) {
    uint thread = gl_LocalInvocationID.x;
    barrier(); // the total before this one has been read
    sums[thread] = mine;
    for (uint half_size = 32u; half_size > 0u; half_size /= 2u) {
        barrier();
        if (thread < half_size) {
            precise float sum = sums[thread] + sums[thread + half_size];
            sums[thread] = sum;
        }
    }
    barrier();
    return sums[0];
}

float largest_of(float mine) {
    uint thread = gl_LocalInvocationID.x;
    barrier(); // the result before this one has been read
    sums[thread] = mine;
    for (uint half_size = 32u; half_size > 0u; half_size /= 2u) {
        barrier();
        if (thread < half_size) {
            sums[thread] = max(sums[thread], sums[thread + half_size]);
        }
    }
    barrier();
    return sums[0];
}
