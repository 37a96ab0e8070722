// Threads that run one job together, with barriers inside it.
//
// A job is a function that every thread runs from start to end (single program, multiple data). Between
// jobs the threads spin briefly and then sleep in the kernel: an idle pool uses no CPU.

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

// A thread's view of the jobs it runs. All member functions are defined in thread_pool.cpp, because units
// compiled for different instruction sets must not share inline code.
struct Worker {
    Team* team;
    int id;
    int count;
    uint32_t released = 0;  // releases that this thread has seen
    // If spinning was not long enough, other programs are using the processors. The thread then sleeps at
    // once the next few times it waits before it spins again, and more often after each spin in vain.
    int spins_to_skip = 0;  // how many more times it sleeps without spinning
    int last_skipped = 0;   // the value of `spins_to_skip` after the last spin

    // Returns when every thread of the job has called it. The next `take` starts from 0 again.
    void barrier();
    // A barrier in two halves. `arrive` returns true at once for the last thread to arrive, which can then
    // work alone before it calls `release`. For the other threads `arrive` returns false after that
    // release.
    bool arrive();
    void release();
    // Waits for a release by another thread that did not wait for all to arrive.
    void follow();
    // Returns the first of the next `grain` items that no thread of the job has taken since the last
    // barrier.
    int64_t take(int64_t grain);
    // Like `take`, for `items` items whose neighbours are close in memory: sets `run` to the next items of
    // the thread's own share, then to what is left of the shares of others. Returns false if nothing is
    // left.
    bool take_near(int64_t items, int64_t grain, Run& run);
};

class ThreadPool {
  public:
    using Job = void (*)(void* context, Worker& worker);

    // `threads` includes the thread that calls `run`. Waiting threads spin for `spin_us` microseconds
    // before they sleep; pass 0 if there are more threads than processors. If `processors` names a logical
    // processor for each thread, the threads of the pool are pinned to them; the caller of `run` is never
    // pinned. Throws std::system_error if the system refuses to start that many threads.
    ThreadPool(int threads, int spin_us, const std::vector<int>& processors = {});
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return size_; }

    // A worker for the thread that calls `run`, if it works alone: it takes all items, and its barriers do
    // not wait.
    Worker solo() { return {.team = solo_.get(), .id = 0, .count = 1}; }

    // Runs a job on all threads, with float32 subnormals treated as zero, and returns when all have
    // finished. Concurrent callers run one after the other.
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
