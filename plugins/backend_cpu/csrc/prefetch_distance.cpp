#include "prefetch_distance.hpp"

namespace llmd {

namespace {

int64_t row_ahead() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_is("intel")) return 2048;
#endif
    return 512;
}

}  // namespace

const int64_t kAvx512RowAhead = row_ahead();

}  // namespace llmd
