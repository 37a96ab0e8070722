// Shares items among threads if the next kernel reads the results: each thread keeps its own share from
// kernel to kernel, so that it finds in its cache what it wrote.

#pragma once

namespace llmd::LLMD_ISA {

// Calls f(item) for the items that this thread takes, `grain` of them at a time.
template <class F>
LLMD_INLINE void each_near(Worker& worker, int64_t items, int64_t grain, F&& f) {
    for (Run run; worker.take_near(items, grain, run);) {
        for (int64_t item = run.first; item < run.last; ++item) f(item);
    }
}

}  // namespace llmd::LLMD_ISA
