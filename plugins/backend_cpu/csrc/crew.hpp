// Runs a sequence of kernels on the threads of a job: decides which thread runs what, and where threads
// wait.

#pragma once

#include "thread_pool.hpp"

namespace llmd {

// Large kernels are shared by all threads. The last thread to finish a large kernel runs the small kernels
// that follow it alone, then releases the others: one barrier per large kernel.
class Crew {
  public:
    // With few rows, one thread runs the small kernels alone, because they take less time than a barrier.
    Crew(Worker& worker, Worker solo, int64_t rows)
        : worker_(worker), solo_(solo), few_(rows <= kFewRows), alone_(worker.id == 0) {
        if (!alone_) worker_.follow();
    }
    ~Crew() {
        if (alone_) worker_.release();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    // Runs a kernel whose work grows with the weights or the context, on all threads.
    template <class Kernel, class Args>
    void share(const Kernel& kernel, const Args& args) {
        if (alone_) worker_.release();
        kernel(args, worker_);
        alone_ = worker_.arrive();
    }

    // Runs a kernel whose work grows only with the number of rows.
    template <class Kernel, class Args>
    void run_small(const Kernel& kernel, const Args& args) {
        if (!few_) return share(kernel, args);
        if (!alone_) return;
        kernel(args, solo_);
        solo_.barrier();
    }

    // Runs a function on one thread. The kernels after it see what it wrote, also in their arguments.
    template <class Function>
    void run_once(const Function& function) {
        if (alone_) function();
    }

  private:
    static constexpr int64_t kFewRows = 2;

    Worker& worker_;
    Worker solo_;
    bool few_;
    bool alone_;  // the other threads wait for this one
};

}  // namespace llmd
