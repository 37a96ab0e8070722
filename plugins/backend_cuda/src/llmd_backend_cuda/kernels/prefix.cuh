// Sums over the threads of a block, in their order.
#pragma once

#include "gpu.cuh"

// The sum over the threads before this one, and over all. `sums` has an element for each warp and is free
// again after the next barrier.
struct Prefix {
    i32 before, all;
};
DEVICE Prefix prefix_of(i32 value, i32* sums) {
    i32 own = value;
    for (int lanes = 1; lanes < WARP; lanes *= 2) {
        const i32 below = (i32)shuffle_up((u32)own, lanes);
        if (lane_index() >= lanes) own += below;
    }
    if (lane_index() == WARP - 1) sums[warp_index()] = own;
    block_barrier();
    Prefix prefix = {own - value, 0};
    for (int warp = 0; warp < num_threads() / WARP; ++warp) {
        if (warp == warp_index()) prefix.before += prefix.all;
        prefix.all += sums[warp];
    }
    return prefix;
}
