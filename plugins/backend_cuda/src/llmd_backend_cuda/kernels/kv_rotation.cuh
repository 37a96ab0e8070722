// The angles of rotated pairs.
#pragma once

#include "gpu.cuh"

// cos and sin of an angle, times a factor.
struct Turn {
    float cos, sin;
};

// The turn by position * inv_freq radians. A context may have a million positions: the angle and its distance
// to a multiple of pi / 2 are float64. The polynomials are those of Moshier's Cephes library for float32 and
// angles up to pi / 4.
DEVICE Turn turn_by(int position, double inv_freq, float factor) {
    const double angle = position * inv_freq;
    const double quarters = rint(angle * 0.63661977236758134308);
    // Both products are exact but for the last bits of their sum: pi / 2 is the sum of the two constants.
    const double rest =
        fma(-quarters, 6.123233995736766036e-17, fma(-quarters, 1.5707963267948965580, angle));
    const float x = (float)rest, square = x * x;
    float sin = fmaf(square, -1.9515295891e-4f, 8.3321608736e-3f);
    sin = fmaf(sin, square, -1.6666654611e-1f);
    sin = fmaf(sin * square, x, x);
    float cos = fmaf(square, 2.443315711809948e-5f, -1.388731625493765e-3f);
    cos = fmaf(cos, square, 4.166664568298827e-2f);
    cos = fmaf(cos * square, square, fmaf(square, -0.5f, 1.0f));
    const int quadrant = (int)((i64)quarters & 3);
    const float c = quadrant & 1 ? sin : cos, s = quadrant & 1 ? cos : sin;
    return {(quadrant == 1 || quadrant == 2 ? -c : c) * factor, (quadrant >= 2 ? -s : s) * factor};
}

// The two elements of pair i of a head: the first is at i or 2i.
struct Pair {
    int first, second;
};
DEVICE Pair pair_at(int i, int pairs, bool interleaved) {
    return interleaved ? Pair{2 * i, 2 * i + 1} : Pair{i, i + pairs};
}

DEVICE float turned_first(float first, float second, Turn by) {
    return fmaf(first, by.cos, -(second * by.sin));
}
DEVICE float turned_second(float first, float second, Turn by) {
    return fmaf(second, by.cos, first * by.sin);
}
