// The functions of gpu.cuh for the host: kernels are compiled by a C++ compiler, and the engine runs their
// threads.
//
// What a GPU leaves undefined is an error here, or gives values that no test accepts.
#pragma once

#include "c_math.hpp"
#include "engine.hpp"
#include "half.hpp"

// The attributes are found again in the preprocessed text: they tell which kernels there are, and their
// bounds.
#define DEVICE inline
#define KERNEL extern "C" __attribute__((noinline)) void
#define BOUNDS(threads, blocks) __attribute__((simt_bounds(threads, blocks)))
// One block runs at a time, so that there is one copy of its variables. The engine spoils them before each
// block.
#define SHARED static __attribute__((section("llmd_shared")))
#define DYNAMIC_SHARED(name) u8* const name = simt::running.dynamic_shared
// SHARED alignas(16) float x[4]: here an attribute may stand in the middle.
#define alignas(...) __attribute__((aligned(__VA_ARGS__)))

// The place of a call, as a last argument that is not passed.
#define SITE simt::Site site = {__builtin_FILE(), __builtin_LINE()}

DEVICE int thread_index() { return simt::running.thread; }
DEVICE int num_threads() { return simt::running.num_threads; }
DEVICE int block_x() { return simt::running.block[0]; }
DEVICE int block_y() { return simt::running.block[1]; }
DEVICE int block_z() { return simt::running.block[2]; }
DEVICE int grid_x() { return simt::running.grid[0]; }
DEVICE int lane_index() { return simt::running.thread & 31; }
DEVICE int warp_index() { return simt::running.thread >> 5; }

DEVICE void block_barrier(SITE) { simt::meet_block(site); }
DEVICE void warp_barrier(SITE) {
    simt::meet_warp([](void* const*) {}, nullptr, "warp_barrier", site);
}
DEVICE void global_fence() {}

#include "simt_math.hpp"
#include "simt_warp.hpp"
#include "simt_words.hpp"
