// float16 by integer operations: Vulkan lets packHalf2x16 round in any direction, and unpackHalf2x16 drop subnormals.

// Exact.
float from_half(uint h) {
    uint exponent = (h >> 10) & 31u, mantissa = h & 1023u, sign_bit = (h & 0x8000u) << 16;
    float size = exponent == 0u ? float(mantissa) * 5.9604644775390625e-8
                                : uintBitsToFloat(((exponent + 112u) << 23) | (mantissa << 13));
    return uintBitsToFloat(floatBitsToUint(size) | sign_bit);
}

// Rounds to nearest even; what is too large becomes infinite.
uint to_half(float x) {
    uint bits = floatBitsToUint(x), sign_bit = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
    if (size >= 0x7f800000u) {
        return sign_bit | (size > 0x7f800000u ? 0x7e00u : 0x7c00u);
    }
    if (size < 0x38800000u) { // subnormal: a multiple of 2^-24
        return sign_bit | uint(roundEven(uintBitsToFloat(size) * 16777216.0));
    }
    uint rounded = size + 0xfffu + ((size >> 13) & 1u);
    return sign_bit | min((rounded >> 13) - (112u << 10), 0x7c00u);
}

// Rounds to nearest even; returns the upper 16 bits.
uint to_bfloat(float x) {
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (bits >> 16) | 64u;
    }
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
