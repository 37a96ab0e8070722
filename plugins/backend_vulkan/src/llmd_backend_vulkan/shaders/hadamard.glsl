// Rotates heads in shared memory (docs/ops.md, "int4"): a head is cut into the largest powers of two, largest first,
// and each block x of n elements becomes H x / sqrt(n), H being Sylvester's Hadamard matrix. Its own inverse.
//
// The includer defines HEADS_TO_ROTATE, a shared array of floats. All 64 threads of a work group take part.

void rotate_heads(uint num_heads, uint stride, uint head_dim) {
    for (uint first = 0; first < head_dim;) {
        uint log_size = uint(findMSB(head_dim - first)), size = 1u << log_size;
        for (uint distance = 1; distance < size; distance *= 2u) {
            barrier();
            for (uint i = gl_LocalInvocationID.x; i < num_heads * size / 2u; i += 64u) {
                uint pair = i % (size / 2u);
                uint at = i / (size / 2u) * stride + first + pair / distance * distance * 2u + pair % distance;
                precise float low = HEADS_TO_ROTATE[at], high = HEADS_TO_ROTATE[at + distance];
                precise float sum = low + high, difference = low - high;
                HEADS_TO_ROTATE[at] = sum;
                HEADS_TO_ROTATE[at + distance] = difference;
            }
        }
        barrier();
        float factor = uintBitsToFloat((127u - log_size / 2u) << 23);
        if ((log_size & 1u) == 1u) {
            factor *= 0.70710678118654752440;
        }
        for (uint i = gl_LocalInvocationID.x; i < num_heads * size; i += 64u) {
            uint at = i / size * stride + first + i % size;
            precise float scaled = HEADS_TO_ROTATE[at] * factor;
            HEADS_TO_ROTATE[at] = scaled;
        }
        first += size;
    }
    barrier();
}
