// What a kernel compiled for the host and the engine that runs its threads know of each other.
#pragma once

namespace simt {

// A place in a kernel's source.
struct Site {
    const char* file;
    int line;
};

// The thread that runs; the engine writes it whenever it switches threads.
struct Running {
    int thread, num_threads;
    int block[3], grid[3];
    unsigned char* dynamic_shared;
};
extern Running running;

// What a launch asks for. The block order: -1 forward, -2 reverse, else the seed of a shuffled order.
struct Launch {
    const char* kernel;
    void (*call)(const void* args);
    const void* args;
    int grid[3];
    int threads, shared_bytes;
    int overlaps;  // whether it may begin before the kernel before it has ended
    long long order;
    double limit_s;                            // time of the processor
    unsigned char *shared_begin, *shared_end;  // the kernel's shared variables of fixed size
};

// Run all blocks. Return null, or what went wrong; the text is valid until the next call.
const char* run(const Launch& launch);

// Wait for all threads of the block.
void meet_block(Site site);

// Wait for the kernel before this one.
void meet_previous_kernel(Site site);

// Computes something for the 32 lanes of a warp at once, from what each lane passed to meet_warp.
typedef void (*Combine)(void* const* records);

// Wait for all lanes of the warp, then go on when `combine` has run once for all of them.
void meet_warp(Combine combine, void* record, const char* name, Site site);

// What a lane brings to a product of tiles, as multiply_tile of gpu.cuh has it.
struct Tile {
    float* sums;
    const unsigned *a, *b;
};

// Products of float16 are exact in float32. Each sum takes them one by one, k ascending, rounded after each;
// the GPU adds some at once and cuts off what it does not keep, so that last bits differ.
void multiply_tiles(void* const* records);

// Asynchronous copies of 16 bytes, in groups of each thread.
void start_copy(void* to_shared, const void* from, Site site);
void commit_copies();
void finish_copies(int pending);

// Products of warpgroups, in groups of each thread: `count` sums, and count * 2 rows of 128 bytes.
void begin_products();
void start_product(float* sums, int count, const unsigned* a, const unsigned char* rows, int step, Site site);
void commit_products();
void finish_products(int pending, Site site);
// What this thread has copied can be seen by products.
void publish_copies();

bool is_shared(const void* address, int bytes);

// End the launch with an error.
[[noreturn]] void fail(Site site, const char* format, ...);

}  // namespace simt
