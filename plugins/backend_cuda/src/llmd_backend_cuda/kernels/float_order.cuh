// The order of floats as that of integers.
#pragma once

#include "gpu.cuh"

// An integer that orders floats: larger for a larger value, the same for 0 and -0. It is above 0 for all
// numbers.
DEVICE u32 ordered(float value) {
    const u32 bits = bits_of(value == 0.0f ? 0.0f : value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
