// fast_exp2, and what CUDA has beyond <math.h> without an include.
#pragma once

// Numbers below the normal ones become 0.
DEVICE float fast_exp2(float x) {
    if (fabsf(x) < 0x1p-126f) return 1.0f;
    const float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}

DEVICE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
DEVICE double rsqrt(double x) { return 1.0 / sqrt(x); }

DEVICE int min(int a, int b) { return b < a ? b : a; }
DEVICE int max(int a, int b) { return a < b ? b : a; }
DEVICE u32 min(u32 a, u32 b) { return b < a ? b : a; }
DEVICE u32 max(u32 a, u32 b) { return a < b ? b : a; }
DEVICE i64 min(i64 a, i64 b) { return b < a ? b : a; }
DEVICE i64 max(i64 a, i64 b) { return a < b ? b : a; }
DEVICE u64 min(u64 a, u64 b) { return b < a ? b : a; }
DEVICE u64 max(u64 a, u64 b) { return a < b ? b : a; }
DEVICE float min(float a, float b) { return fminf(a, b); }
DEVICE float max(float a, float b) { return fmaxf(a, b); }
DEVICE double min(double a, double b) { return fmin(a, b); }
DEVICE double max(double a, double b) { return fmax(a, b); }

// Vector types, read and written by one instruction.
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    u32 x, y;
};
struct alignas(16) uint4 {
    u32 x, y, z, w;
};

DEVICE float2 make_float2(float x, float y) { return {x, y}; }
DEVICE float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
DEVICE double2 make_double2(double x, double y) { return {x, y}; }
DEVICE int2 make_int2(int x, int y) { return {x, y}; }
DEVICE int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
DEVICE uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
DEVICE uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
