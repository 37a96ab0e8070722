// Products of a warpgroup: four warps, of which the first has a number divisible by 4. They run while the
// warps go on. For compute capability 9.0 only, compiled for sm_90a.
//
// In order: write `a`; begin_products; one or more multiply_group; commit_products; later
// wait_for_products and take_sums. Until then neither `a`, the sums nor the rows may be changed or read.
#pragma once

#include "gpu.cuh"

constexpr int SWIZZLED_BYTES = 128;  // of a row in a swizzled tile
constexpr int SWIZZLE_ALIGNMENT = 1024;

// Where a piece of 16 bytes of a row is in a tile of rows of 128 bytes: rows that are read at the same time
// use different banks. The tile begins at a multiple of 1024 bytes.
DEVICE int swizzled(int row, int piece) { return row * SWIZZLED_BYTES + (piece ^ row % 8) * 16; }

#ifdef LLMD_SIMT
#include "simt_warpgroup.hpp"
#else

// The first address from `shared` on where a swizzled tile may begin. The compiler does not know how it came
// about: it would compute it again at each use.
DEVICE u8* swizzle_aligned(u8* shared) {
    u64 address = (u64)shared + (-(u32)__cvta_generic_to_shared(shared) & (SWIZZLE_ALIGNMENT - 1));
    asm("" : "+l"(address));
    return (u8*)address;
}

// Make what this thread has copied or written to shared memory visible to multiply_group, after a barrier.
DEVICE void publish_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Wait until at most `pending` of the last commits are unfinished.
template <int pending>
DEVICE void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Let multiply_group read `a`, which was written before, and add to sums.
DEVICE void begin_products(u32 (&a)[4]) {
    asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Read or change the sums after wait_for_products<0>: the compiler keeps what follows behind it.
template <int COUNT>
DEVICE void take_sums(float (&sums)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// What the tensor cores know of a tile of rows: its address, 1024 bytes between 8 rows and the next, and the
// swizzle of 128 bytes.
DEVICE u64 describe_rows(const void* rows) {
    const u32 address = (u32)__cvta_generic_to_shared(rows);
    return (u64)((address & 0x3ffff) >> 4) | 1ull << 16 | (u64)(SWIZZLE_ALIGNMENT >> 4) << 32 | 1ull << 62;
}

#define SUMS_8(i)                                                                              \
    "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
        "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define SUMS_32(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24)
#define NAMES_32                                                                                      \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
    "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64                                                                                        \
    NAMES_32                                                                                            \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
    "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// sums[64 x N] += a[64 x 16] b[16 x N], float16 products and float32 sums, N 64 or 128. Warp w of the group
// has rows 16w to 16w + 15, as multiply_tile has them: `a` as there, sums[4n .. 4n + 3] of columns 8n to
// 8n + 7. b is [column][k] in a swizzled tile in shared memory, of which k is 16 `step` to 16 `step` + 15.
DEVICE void multiply_group(float (&sums)[32], const u32 (&a)[4], const u8* rows, int step) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" NAMES_32
                 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
                 : SUMS_32(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(describe_rows(rows) + 2 * step)
                 : "memory");
}
DEVICE void multiply_group(float (&sums)[64], const u32 (&a)[4], const u8* rows, int step) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" NAMES_64
                 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
                 : SUMS_32(0), SUMS_32(32)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(describe_rows(rows) + 2 * step)
                 : "memory");
}
#undef SUMS_8
#undef SUMS_32
#undef NAMES_32
#undef NAMES_64

#endif
