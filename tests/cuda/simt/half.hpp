// Conversions of float16, rounded once to nearest even, by integer and exact arithmetic of double.
#pragma once

namespace simt {

inline double double_of_bits(unsigned long long bits) {
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
inline unsigned long long bits_of_double(double value) {
    unsigned long long bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Return 2^exponent, of the range of normal numbers.
inline double power_of_2(int exponent) { return double_of_bits((unsigned long long)(exponent + 1023) << 52); }

// Values beyond float16 become infinity. Not a number is 0x7fff, as the GPU has it.
inline unsigned short round_to_half(double value) {
    if (value != value) return 0x7fff;
    const unsigned long long bits = bits_of_double(value);
    const unsigned short sign = (bits >> 63) << 15;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent > 15) return sign | 0x7c00;
    const int least = exponent < -14 ? -14 : exponent;  // of subnormals, that of the least normal number
    const double magnitude = value < 0 ? -value : value;
    const double units = magnitude * power_of_2(10 - least);  // at most 2048
    const double to_integers = 0x1p52;                        // the sum has no fraction bits
    const int rounded = (int)((units + to_integers) - to_integers);
    return sign |
           (unsigned short)(((least + 14) << 10) + rounded);  // a carry raises the exponent, up to infinity
}

inline float half_to_float(unsigned short half) {
    const unsigned magnitude = (half & 0x7fffu) << 13;
    const unsigned special = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;  // infinity or not a number
    float value;
    __builtin_memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;  // exact, subnormals too
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits |= special | (half & 0x8000u) << 16;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// Return a * b + c, rounded once. The product is exact in double. The sum is rounded to odd there, which
// leaves enough to round right to float16 (Boldo and Melquiond, Emulation of FMA and correctly rounded sums).
inline unsigned short fused_half(unsigned short a, unsigned short b, unsigned short c) {
    const double product = (double)half_to_float(a) * half_to_float(b);
    const double addend = half_to_float(c);
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    unsigned long long bits = bits_of_double(sum);
    if (error != 0 && error == error && (bits & 1) == 0) {
        const bool away_from_zero = (error > 0) == (sum > 0);
        bits += away_from_zero ? 1 : -1;
    }
    return round_to_half(double_of_bits(bits));
}

}  // namespace simt
