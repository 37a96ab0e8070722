// Starts a kernel with arguments that come as bytes.
#pragma once

#include <cstdio>

#include "engine.hpp"

// The linker sets them to the bounds of the kernels' shared variables.
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_llmd_shared, __stop_llmd_shared;

namespace simt {

// What the host asks for; `runtime.py` has its mirror.
struct Request {
    const void* args;
    int args_bytes;
    int grid[3];
    int threads, shared_bytes, overlaps;
    long long order;
    double limit_s;
};

template <class Args>
const char* run_kernel(const char* name, void (*kernel)(Args), int most_threads, const Request& request) {
    static char error[256];
    static void (*function)(Args);
    if (request.args_bytes != (int)sizeof(Args)) {
        snprintf(error, sizeof error, "%s takes %d bytes of arguments, not %d", name, (int)sizeof(Args),
                 request.args_bytes);
        return error;
    }
    if (request.threads > most_threads) {
        snprintf(error, sizeof error, "%s has at most %d threads, not %d", name, most_threads,
                 request.threads);
        return error;
    }
    function = kernel;
    Launch launch = {name,
                     [](const void* args) { function(*(const Args*)args); },
                     request.args,
                     {request.grid[0], request.grid[1], request.grid[2]},
                     request.threads,
                     request.shared_bytes,
                     request.overlaps,
                     request.order,
                     request.limit_s,
                     &__start_llmd_shared,
                     &__stop_llmd_shared};
    return run(launch);
}

}  // namespace simt
