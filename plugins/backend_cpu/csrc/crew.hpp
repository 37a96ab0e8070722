// The threads of a job as a sequence of kernels sees them: who runs what, and where they wait for each other.

#pragma once

#include "thread_pool.hpp"

namespace llmd {

class Crew {
  public:
    // Where `rows` are few, thread 0 runs small kernels alone: they take less time than a barrier.
    Crew(Worker& worker, Worker solo, int64_t rows) : worker_(worker), solo_(solo), few_(rows <= kFewRows) {}

    // A kernel whose work grows with the weights or the context: all threads share it.
    template <class Kernel, class Args>
    void share(const Kernel& kernel, const Args& args) {
        if (behind_) worker_.barrier();
        behind_ = false;
        kernel(args, worker_);
        worker_.barrier();
    }

    // A kernel whose work grows with the rows alone.
    template <class Kernel, class Args>
    void run_small(const Kernel& kernel, const Args& args) {
        if (!few_) return share(kernel, args);
        if (worker_.id == 0) {
            kernel(args, solo_);
            solo_.barrier();
        }
        behind_ = true;
    }

  private:
    static constexpr int64_t kFewRows = 2;

    Worker& worker_;
    Worker solo_;
    bool few_;
    bool behind_ = false;  // thread 0 ran something that the others must wait for
};

}  // namespace llmd
