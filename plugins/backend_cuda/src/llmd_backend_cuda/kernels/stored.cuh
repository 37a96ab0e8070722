// Elements of plain weights, which kernels use with their exact values.
//
// Definition: FORMAT 0, 1 or 2: float32, float16 or bfloat16.
#pragma once

#include "gpu.cuh"

#ifndef FORMAT
#define FORMAT 0
#endif

#if FORMAT == 0
typedef float Stored;
#else
typedef u16 Stored;
#endif

DEVICE float value_of(Stored stored) {
#if FORMAT == 0
    return stored;
#elif FORMAT == 1
    return from_half(stored);
#else
    return float_of((u32)stored << 16);
#endif
}
