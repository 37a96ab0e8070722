// What kernels use of the GPU beyond C++: one function for each instruction, and nothing is included.
//
// With LLMD_SIMT the same functions come from simt.hpp, which runs kernels on the host for tests.
//
// A `half2` is two float16 in a 32-bit word, the first in the low half. No type of the CUDA headers is used:
// they need files that a machine with only a driver does not have.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

// Four words that are read and written by one instruction.
struct alignas(16) Words4 {
    u32 x, y, z, w;
};

// Two words that are read and written by one instruction.
struct alignas(8) Words2 {
    u32 x, y;
};

typedef u32 half2;

constexpr u32 ALL_LANES = 0xffffffffu;
constexpr int WARP = 32;

// Arguments that a kernel indexes stay where the launch put them: KERNEL name(IN_PLACE const Args args).
#ifdef LLMD_SIMT
#define IN_PLACE
#include "simt.hpp"
#else
#define IN_PLACE __grid_constant__

#define DEVICE __device__ __forceinline__
#define KERNEL extern "C" __global__ void
// Threads of a block, and the least number of blocks that a multiprocessor must have room for.
#define BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
// Shared memory of fixed size: SHARED float sums[8];
#define SHARED __shared__
// Shared memory whose size is given at the launch, at least 16-byte aligned.
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) u8 name[]

DEVICE int thread_index() { return threadIdx.x; }
DEVICE int num_threads() { return blockDim.x; }
DEVICE int block_x() { return blockIdx.x; }
DEVICE int block_y() { return blockIdx.y; }
DEVICE int block_z() { return blockIdx.z; }
DEVICE int grid_x() { return gridDim.x; }
DEVICE int lane_index() { return threadIdx.x & 31; }
DEVICE int warp_index() { return threadIdx.x >> 5; }

// Wait for all threads of the block; makes their writes to shared and global memory visible to each other.
DEVICE void block_barrier() { __syncthreads(); }
// Wait for all lanes of the warp.
DEVICE void warp_barrier() { __syncwarp(); }
// Make earlier writes of this thread visible to the other blocks before its later writes.
DEVICE void global_fence() { __threadfence(); }

DEVICE float shuffle_xor(float value, int lanes) { return __shfl_xor_sync(ALL_LANES, value, lanes); }
DEVICE u32 shuffle_xor(u32 value, int lanes) { return __shfl_xor_sync(ALL_LANES, value, lanes); }
DEVICE i32 shuffle_xor(i32 value, int lanes) { return __shfl_xor_sync(ALL_LANES, value, lanes); }
DEVICE u64 shuffle_xor(u64 value, int lanes) { return __shfl_xor_sync(ALL_LANES, value, lanes); }
DEVICE double shuffle_xor(double value, int lanes) { return __shfl_xor_sync(ALL_LANES, value, lanes); }
DEVICE float shuffle(float value, int lane) { return __shfl_sync(ALL_LANES, value, lane); }
DEVICE u32 shuffle(u32 value, int lane) { return __shfl_sync(ALL_LANES, value, lane); }
DEVICE i32 shuffle(i32 value, int lane) { return __shfl_sync(ALL_LANES, value, lane); }
// The value of the lane `lanes` below; lanes without one keep their own.
DEVICE float shuffle_up(float value, int lanes) { return __shfl_up_sync(ALL_LANES, value, lanes); }
DEVICE u32 shuffle_up(u32 value, int lanes) { return __shfl_up_sync(ALL_LANES, value, lanes); }
DEVICE double shuffle_up(double value, int lanes) { return __shfl_up_sync(ALL_LANES, value, lanes); }
// One bit for each lane, set where `condition` holds.
DEVICE u32 ballot(bool condition) { return __ballot_sync(ALL_LANES, condition); }

DEVICE u32 bits_of(float value) { return __float_as_uint(value); }
DEVICE float float_of(u32 bits) { return __uint_as_float(bits); }
DEVICE int count_bits(u32 word) { return __popc(word); }
DEVICE int leading_zeros(u32 word) { return __clz(word); }
DEVICE u32 high_product(u32 a, u32 b) { return __umulhi(a, b); }

// Bytes of the eight bytes of a (0 to 3) and b (4 to 7), chosen by the four hexadecimal digits of `chosen`.
DEVICE u32 pick_bytes(u32 a, u32 b, u32 chosen) { return __byte_perm(a, b, chosen); }
// The same with the four lowest digits of `chosen`; for digits from 8 on, all bits are the sign of byte
// `digit - 8`.
DEVICE u32 pick_bytes_or_signs(u32 a, u32 b, u32 chosen) {
    u32 word;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "r"(chosen));
    return word;
}
// sum + the products of the four int8 of a and of b.
DEVICE i32 dot4(u32 a, u32 b, i32 sum) {
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(sum));
    return sum;
}

// Round to nearest even. Values beyond float16 become its largest, never infinity.
DEVICE half2 to_half2(float first, float second) {
    first = fminf(fmaxf(first, -65504.0f), 65504.0f);
    second = fminf(fmaxf(second, -65504.0f), 65504.0f);
#if __CUDA_ARCH__ >= 800
    half2 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
#else
    u16 low, high;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(low) : "f"(first));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(high) : "f"(second));
    return low | (u32)high << 16;
#endif
}
DEVICE u16 to_half(float value) { return to_half2(value, 0.0f) & 0xffff; }
DEVICE float from_half(u16 half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}
DEVICE float first_of(half2 both) { return from_half(both & 0xffff); }
DEVICE float second_of(half2 both) { return from_half(both >> 16); }
DEVICE half2 twice(u16 half) { return half * 0x10001u; }
DEVICE half2 add(half2 a, half2 b) {
    half2 sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}
DEVICE half2 subtract(half2 a, half2 b) {
    half2 difference;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}
DEVICE half2 multiply(half2 a, half2 b) {
    half2 product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}
// a * b + c, rounded once.
DEVICE half2 multiply_add(half2 a, half2 b, half2 c) {
    half2 result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

// 16 bytes that no kernel writes, and that are read once.
DEVICE Words4 read_once(const void* from) {
    Words4 w;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
        : "l"(from));
    return w;
}
DEVICE Words2 read_once_8(const void* from) {
    Words2 w;
    asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(w.x), "=r"(w.y) : "l"(from));
    return w;
}
DEVICE u32 read_once_4(const void* from) {
    u32 w;
    asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(w) : "l"(from));
    return w;
}

// 16 bytes from global to shared memory, without waiting for them. They are there after a commit_copies, a
// wait_for_copies, and a block_barrier if other threads read them. Before compute capability 8.0, they are
// copied at once.
#if __CUDA_ARCH__ >= 800
DEVICE void copy_16(void* to_shared, const void* from) {
    u32 address = (u32)__cvta_generic_to_shared(to_shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Wait until at most `pending` of the last commits are unfinished.
template <int pending>
DEVICE void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
#else
DEVICE void copy_16(void* to_shared, const void* from) { *(Words4*)to_shared = *(const Words4*)from; }
DEVICE void commit_copies() {}
template <int pending>
DEVICE void wait_for_copies() {}
#endif

// Four 8 x 8 matrices of float16 in shared memory. Lane l gives the address of row l % 8 of matrix l / 8.
// Word m of the result has elements (l / 4, l % 4 * 2) and (l / 4, l % 4 * 2 + 1) of matrix m.
DEVICE void load_matrices(u32 (&words)[4], const void* shared_row) {
    u32 address = (u32)__cvta_generic_to_shared(shared_row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

// sums[16 x 8] += a[16 x 16] b[16 x 8], float16 products and float32 sums. With g = lane / 4 and t = lane %
// 4:
//   a[0] = (g, 2t and 2t+1)   a[1] = (g+8, same)   a[2] = (g, 2t+8 and 2t+9)   a[3] = (g+8, same)
//   b[0] = (2t and 2t+1, g)   b[1] = (2t+8 and 2t+9, g)
//   sums[0], sums[1] = (g, 2t and 2t+1)   sums[2], sums[3] = (g+8, same)
DEVICE void multiply_tile(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}

// sums[16 x 8] += a[16 x 32] b[32 x 8] of int8, exactly. With g and t as above:
//   a[0] = (g, 4t to 4t+3)   a[1] = (g+8, same)   a[2] = (g, 4t+16 to 4t+19)   a[3] = (g+8, same)
//   b[0] = (4t to 4t+3, g)   b[1] = (4t+16 to 4t+19, g)   sums as above
DEVICE void multiply_tile(i32 (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = i % 2 * 2;
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(sums[row]), "+r"(sums[row + 1])
            : "r"(a[i]), "r"(b[i / 2]));
    }
#endif
}

DEVICE i32 atomic_add(i32* at, i32 value) { return atomicAdd(at, value); }
DEVICE u32 atomic_add(u32* at, u32 value) { return atomicAdd(at, value); }
DEVICE float atomic_add(float* at, float value) { return atomicAdd(at, value); }

// Approximations with an error of about two units in the last place.
DEVICE float fast_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif

// For launches that overlap: wait until the kernel before this one has ended, and its writes can be read.
// Before, only what no kernel writes may be read. Does nothing in other launches, and before compute
// capability 9.0.
DEVICE void wait_for_previous_kernel() {
#if !defined(LLMD_SIMT) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Let the next kernel begin once all blocks have called this, if its launch overlaps.
DEVICE void allow_next_kernel() {
#if !defined(LLMD_SIMT) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

DEVICE float infinity() { return float_of(0x7f800000u); }

// Sums and maxima over the lanes of a warp, the same in all lanes and in every run.
DEVICE float warp_sum(float value) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) value += shuffle_xor(value, lanes);
    return value;
}
DEVICE float warp_max(float value) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) value = fmaxf(value, shuffle_xor(value, lanes));
    return value;
}

// Return the sum over the threads of a block, the same in all of them. `sums` has an element for each warp;
// the block may use it again only after another barrier.
DEVICE float block_sum(float value, float* sums) {
    value = warp_sum(value);
    if (lane_index() == 0) sums[warp_index()] = value;
    block_barrier();
    float total = 0.0f;
    for (int warp = 0; warp < num_threads() / WARP; ++warp) total += sums[warp];
    return total;
}
