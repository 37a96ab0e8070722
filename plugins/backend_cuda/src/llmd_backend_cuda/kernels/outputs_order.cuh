// The order of tokens: the logit descending, then the id ascending; as integers, and sorted in shared memory.
#pragma once

#include "float_order.cuh"
#include "outputs.cuh"

DEVICE float value_of(u32 order) { return float_of(order & 0x80000000u ? order & 0x7fffffffu : ~order); }

// A key is larger for a better token. 0 is below all keys.
DEVICE u64 key_of(u32 order, int id) { return (u64)order << 32 | (u32)~id; }
DEVICE u64 key_of(float value, int id) { return key_of(ordered(value), id); }
DEVICE int id_of(u64 key) { return (int)~(u32)key; }
DEVICE float value_of(u64 key) { return value_of((u32)(key >> 32)); }

DEVICE u64 larger(u64 a, u64 b) { return a > b ? a : b; }

DEVICE u64 warp_largest(u64 key) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) key = larger(key, shuffle_xor(key, lanes));
    return key;
}

// One step of a bitonic sort: the keys at index and index ^ stride change places if they are in the wrong
// order.
DEVICE u64 exchange_lanes(u64 key, int index, int size, int stride) {
    const u64 other = shuffle_xor(key, stride);
    const bool is_first = (index & stride) == 0;
    const bool descends = (index & size) == 0;
    return (key > other) == (is_first == descends) ? key : other;
}

// Sort keys in shared memory, the largest first. All threads of the block take part. `count` is a power of
// two and at least 32; no two keys are equal, except 0. Strides below 32 stay within a warp and need no
// barrier. The loops are not unrolled: this is used in many places, and code that is not in the instruction
// cache costs more.
DEVICE void sort_keys(u64* keys, int count) {
    block_barrier();
#pragma unroll 1
    for (int first = warp_index() * WARP; first < count; first += THREADS) {
        const int index = first + lane_index();
        u64 key = keys[index];
#pragma unroll 1
        for (int size = 2; size <= WARP; size *= 2) {
#pragma unroll 1
            for (int stride = size / 2; stride > 0; stride /= 2)
                key = exchange_lanes(key, index, size, stride);
        }
        keys[index] = key;
    }
#pragma unroll 1
    for (int size = 2 * WARP; size <= count; size *= 2) {
#pragma unroll 1
        for (int stride = size / 2; stride >= WARP; stride /= 2) {
            block_barrier();
#pragma unroll 1
            for (int i = thread_index(); i < count / 2; i += THREADS) {
                const int low = 2 * i - (i & (stride - 1)), high = low + stride;
                const u64 a = keys[low], b = keys[high];
                if ((a < b) == ((low & size) == 0)) {
                    keys[low] = b;
                    keys[high] = a;
                }
            }
        }
        block_barrier();
#pragma unroll 1
        for (int first = warp_index() * WARP; first < count; first += THREADS) {
            const int index = first + lane_index();
            u64 key = keys[index];
            for (int stride = WARP / 2; stride > 0; stride /= 2)
                key = exchange_lanes(key, index, size, stride);
            keys[index] = key;
        }
    }
    block_barrier();
}

// Sort the first `count` of keys that have been written by any threads of the block.
DEVICE void sort_some(u64* keys, int count) {
    int padded = WARP;
    while (padded < count) padded *= 2;
    for (int i = count + thread_index(); i < padded; i += THREADS) keys[i] = 0;
    sort_keys(keys, padded);
}
