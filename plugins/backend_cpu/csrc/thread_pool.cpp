#include "thread_pool.hpp"

#include <chrono>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include "denormals.hpp"

namespace llmd {

namespace {

// Two lines of 64 bytes: the adjacent-line prefetcher fetches pairs.
constexpr size_t kLine = 128;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

// Keeps a thread on a logical processor. Where the system does not let it, the thread runs anywhere.
void bind(std::thread& thread, int processor) {
#if defined(__linux__)
    if (processor < 0 || processor >= CPU_SETSIZE) return;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    pthread_setaffinity_np(thread.native_handle(), sizeof only, &only);
#else
    static_cast<void>(thread);
    static_cast<void>(processor);
#endif
}

using Clock = std::chrono::steady_clock;

}  // namespace

struct Team {
    alignas(kLine) std::atomic<uint32_t> job_number{0};
    alignas(kLine) std::atomic<uint32_t> barrier_number{0};
    alignas(kLine) std::atomic<uint32_t> arrived{0};
    alignas(kLine) std::atomic<int64_t> next_item{0};
    std::atomic<bool> stopping{false};
    Clock::duration spin{};

    // Waits until `value` is no longer `old`: spinning first, then asleep.
    void await(std::atomic<uint32_t>& value, uint32_t old) const {
        const auto limit = Clock::now() + spin;
        do {
            for (int i = 0; i < 32; ++i) {
                if (value.load(std::memory_order_acquire) != old) return;
                relax();
            }
        } while (Clock::now() < limit);
        value.wait(old, std::memory_order_acquire);
    }
};

void Worker::barrier() {
    if (count == 1) {
        team->next_item.store(0, std::memory_order_relaxed);
        return;
    }
    const uint32_t number = team->barrier_number.load(std::memory_order_relaxed);
    if (team->arrived.fetch_add(1, std::memory_order_acq_rel) == static_cast<uint32_t>(count) - 1) {
        team->arrived.store(0, std::memory_order_relaxed);
        team->next_item.store(0, std::memory_order_relaxed);
        team->barrier_number.store(number + 1, std::memory_order_release);
        team->barrier_number.notify_all();
    } else {
        team->await(team->barrier_number, number);
    }
}

int64_t Worker::take(int64_t grain) { return team->next_item.fetch_add(grain, std::memory_order_relaxed); }

ThreadPool::ThreadPool(int threads, int spin_us, const std::vector<int>& processors)
    : size_(threads), team_(std::make_unique<Team>()), solo_(std::make_unique<Team>()) {
    team_->spin = std::chrono::microseconds(spin_us);
    try {
        for (int id = 1; id < threads; ++id) {
            threads_.emplace_back([this, id] { serve(id); });
            if (!processors.empty()) bind(threads_.back(), processors.at(static_cast<size_t>(id)));
        }
    } catch (...) {
        stop();
        throw;
    }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
    team_->stopping.store(true, std::memory_order_relaxed);
    announce();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::announce() {
    team_->job_number.fetch_add(1, std::memory_order_release);
    team_->job_number.notify_all();
}

void ThreadPool::run(Job job, void* context) {
    const std::lock_guard<std::mutex> turn(turn_);
    const DenormalsAreZero mode;
    job_ = job;
    context_ = context;
    announce();
    Worker worker{team_.get(), 0, size_};
    job(context, worker);
    worker.barrier();
}

void ThreadPool::serve(int id) {
    const DenormalsAreZero mode;
    Worker worker{team_.get(), id, size_};
    for (uint32_t seen = 0;; ++seen) {
        team_->await(team_->job_number, seen);
        if (team_->stopping.load(std::memory_order_relaxed)) return;
        job_(context_, worker);
        worker.barrier();
    }
}

}  // namespace llmd
