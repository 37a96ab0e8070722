// Elements of plain weights, which kernels use with their exact values.
//
// Definition: FORMAT 0, 1 or 2: the type `Stored` is float32, float16 or bfloat16.
#pragma once

#include "gpu.cuh"

#ifndef FORMAT
#define FORMAT 0
#endif

struct Float16 {
    u16 bits;
};
struct Bfloat16 {
    u16 bits;
};

#if FORMAT == 0
typedef float Stored;
#elif FORMAT == 1
typedef Float16 Stored;
#else
typedef Bfloat16 Stored;
#endif

DEVICE float value_of(float stored) { return stored; }
DEVICE float value_of(Float16 stored) { return from_half(stored.bits); }
DEVICE float value_of(Bfloat16 stored) { return float_of((u32)stored.bits << 16); }
