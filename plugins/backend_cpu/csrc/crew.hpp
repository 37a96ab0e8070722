// The threads of a job as a sequence of kernels sees them: who runs what, and where they wait for each other.

#pragma once

#include "thread_pool.hpp"

namespace llmd {

// Between two kernels that all threads share, the last to finish the first of them runs the small ones alone
// and then lets the others go on: one barrier for each shared kernel, and no wait for a thread that runs
// already.
class Crew {
  public:
    // Where `rows` are few, one thread runs small kernels alone: they take less time than a barrier.
    Crew(Worker& worker, Worker solo, int64_t rows)
        : worker_(worker), solo_(solo), few_(rows <= kFewRows), alone_(worker.id == 0) {
        if (!alone_) worker_.follow();
    }
    ~Crew() {
        if (alone_) worker_.release();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    // A kernel whose work grows with the weights or the context: all threads share it.
    template <class Kernel, class Args>
    void share(const Kernel& kernel, const Args& args) {
        if (alone_) worker_.release();
        kernel(args, worker_);
        alone_ = worker_.arrive();
    }

    // A kernel whose work grows with the rows alone.
    template <class Kernel, class Args>
    void run_small(const Kernel& kernel, const Args& args) {
        if (!few_) return share(kernel, args);
        if (!alone_) return;
        kernel(args, solo_);
        solo_.barrier();
    }

  private:
    static constexpr int64_t kFewRows = 2;

    Worker& worker_;
    Worker solo_;
    bool few_;
    bool alone_;  // the others wait for this thread
};

}  // namespace llmd
