// Threads that run one job together, with barriers inside it.
//
// A job is a function that every thread runs from start to end (single program, multiple data). Between jobs
// the threads spin for a moment and then sleep in the kernel: an idle pool uses no CPU.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace llmd {

struct Team;

// Items [first, last).
struct Run {
    int64_t first;
    int64_t last;
};

// What a thread sees of the jobs it runs. All members are defined in thread_pool.cpp: units compiled for
// different instruction sets may share no inline code.
struct Worker {
    Team* team;
    int id;
    int count;
    uint32_t released = 0;  // how often the threads were released, as far as this one has seen
    // Where spinning was not enough, others have the processors: the thread sleeps at once the next times it
    // waits, more of them after each such spin, before it tries again.
    int hurried = 0;  // times that it will still sleep at once
    int in_vain = 0;  // how many these were when it last tried

    // Returns when every thread of the job has come here, and makes `take` begin at 0 again.
    void barrier();
    // A barrier in two halves. `arrive` returns true for the last thread that comes, at once: what it does
    // then is done before it lets the others go on with `release`. For these it returns false after that.
    bool arrive();
    void release();
    // Waits for a release that another thread gives without an arrival of all.
    void follow();
    // First of the next `grain` items that no thread of the job has taken since the last barrier.
    int64_t take(int64_t grain);
    // The same of `items` in all, where neighbours lie together in memory: `run` becomes the next items of
    // the thread's own part, then of what others have left of theirs. False where none is left.
    bool take_near(int64_t items, int64_t grain, Run& run);
};

class ThreadPool {
  public:
    using Job = void (*)(void* context, Worker& worker);

    // `threads` includes the thread that calls `run`. Waiting threads spin `spin_us` microseconds before they
    // sleep; 0 where there are more threads than processors. Where `processors` has a logical processor for
    // each thread, those that the pool starts stay there; the caller of `run` is never bound.
    // Throws std::system_error where the system does not start so many.
    ThreadPool(int threads, int spin_us, const std::vector<int>& processors = {});
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return size_; }

    // A worker for the calling thread of `run` alone: all work is its own, and its barriers wait for nobody.
    Worker solo() { return {.team = solo_.get(), .id = 0, .count = 1}; }

    // Runs a job on all threads, with float32 subnormals treated as zero, and returns when all have finished.
    // Callers from several threads take turns.
    void run(Job job, void* context);

  private:
    void announce();
    void stop();
    void serve(int id);

    int size_;
    std::unique_ptr<Team> team_;
    std::unique_ptr<Team> solo_;
    Worker caller_;
    std::mutex turn_;
    Job job_ = nullptr;
    void* context_ = nullptr;
    std::vector<std::thread> threads_;
};

}  // namespace llmd
