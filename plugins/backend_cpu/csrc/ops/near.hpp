// Items that the threads of a job share where what a kernel leaves is read by the next one: each thread keeps
// to its own part of them, so that it finds in its cache what it wrote there.

#pragma once

namespace llmd::LLMD_ISA {

// Calls f(item) for those of `items` that this thread takes, `grain` of them at a time.
template <class F>
LLMD_INLINE void each_near(Worker& worker, int64_t items, int64_t grain, F&& f) {
    for (Run run; worker.take_near(items, grain, run);) {
        for (int64_t item = run.first; item < run.last; ++item) f(item);
    }
}

}  // namespace llmd::LLMD_ISA
