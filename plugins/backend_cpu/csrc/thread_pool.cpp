#include "thread_pool.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>

#include "denormals.hpp"

namespace llmd {

namespace {

// Two cache lines of 64 bytes, because the adjacent-line prefetcher fetches pairs.
constexpr size_t kLine = 128;

constexpr int kMostSkipped = 63;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

// Pins a thread to a logical processor. If the system refuses, the thread runs anywhere.
void bind(std::thread& thread, int processor) {
    if (processor < 0 || processor >= CPU_SETSIZE) return;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    pthread_setaffinity_np(thread.native_handle(), sizeof only, &only);
}

using Clock = std::chrono::steady_clock;

}  // namespace

// A number that threads wait for. std::atomic::wait yields the processor before it sleeps, and on a busy
// machine a thread that yields waits for a whole time slice of another program. A thread that sleeps is
// woken right away.
class alignas(kLine) Signal {
  public:
    uint32_t number() const { return number_.load(std::memory_order_relaxed); }

    // Sets a new number and wakes the sleeping threads.
    void set(uint32_t number) {
        number_.store(number, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(FUTEX_WAKE_PRIVATE, INT_MAX);
    }

    // Returns when the number is no longer `old`: spins first, then sleeps. Returns whether spinning was
    // enough.
    bool await(uint32_t old, Clock::duration spin) {
        const auto limit = Clock::now() + spin;
        do {
            for (int i = 0; i < 32; ++i) {
                if (number_.load(std::memory_order_acquire) != old) return true;
                relax();
            }
        } while (Clock::now() < limit);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        while (number_.load(std::memory_order_seq_cst) == old) futex(FUTEX_WAIT_PRIVATE, old);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }

  private:
    void futex(int operation, uint32_t value) {
        syscall(SYS_futex, &number_, operation, value, nullptr, nullptr, 0);
    }

    std::atomic<uint32_t> number_{0};
    std::atomic<uint32_t> sleepers_{0};
};

// How much of a thread's own share is taken.
struct alignas(kLine) Share {
    std::atomic<int64_t> taken{0};
};

struct Team {
    explicit Team(int threads) : shares(static_cast<size_t>(threads)) {}

    Signal jobs;
    Signal releases;
    alignas(kLine) std::atomic<uint32_t> arrived{0};
    alignas(kLine) std::atomic<int64_t> next_item{0};
    std::vector<Share> shares;
    std::atomic<bool> stopping{false};
    Clock::duration spin{};
};

void Worker::barrier() {
    if (arrive()) release();
}

bool Worker::arrive() {
    const auto others = static_cast<uint32_t>(count) - 1;
    if (team->arrived.fetch_add(1, std::memory_order_acq_rel) == others) return true;
    follow();
    return false;
}

void Worker::release() {
    team->arrived.store(0, std::memory_order_relaxed);
    team->next_item.store(0, std::memory_order_relaxed);
    for (Share& share : team->shares) share.taken.store(0, std::memory_order_relaxed);
    team->releases.set(++released);
}

void Worker::follow() {
    const bool spins = spins_to_skip == 0;
    const bool enough = team->releases.await(released++, spins ? team->spin : Clock::duration{});
    if (!spins) {
        --spins_to_skip;
    } else {
        last_skipped = enough ? 0 : std::min(2 * last_skipped + 1, kMostSkipped);
        spins_to_skip = last_skipped;
    }
}

int64_t Worker::take(int64_t grain) { return team->next_item.fetch_add(grain, std::memory_order_relaxed); }

bool Worker::take_near(int64_t items, int64_t grain, Run& run) {
    for (int i = 0; i < count; ++i) {
        const int of = (id + i) % count;
        const int64_t end = items * (of + 1) / count;
        std::atomic<int64_t>& taken = team->shares[static_cast<size_t>(of)].taken;
        const int64_t first = items * of / count + taken.fetch_add(grain, std::memory_order_relaxed);
        if (first < end) {
            run = {first, std::min(first + grain, end)};
            return true;
        }
    }
    return false;
}

ThreadPool::ThreadPool(int threads, int spin_us, const std::vector<int>& processors)
    : size_(threads),
      team_(std::make_unique<Team>(threads)),
      solo_(std::make_unique<Team>(1)),
      caller_{.team = team_.get(), .id = 0, .count = threads} {
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

void ThreadPool::announce() { team_->jobs.set(team_->jobs.number() + 1); }

void ThreadPool::run(Job job, void* context) {
    const std::lock_guard<std::mutex> turn(turn_);
    const DenormalsAreZero mode;
    job_ = job;
    context_ = context;
    announce();
    job(context, caller_);
    caller_.barrier();
}

void ThreadPool::serve(int id) {
    const DenormalsAreZero mode;
    Worker worker{.team = team_.get(), .id = id, .count = size_};
    for (uint32_t seen = 0;; ++seen) {
        team_->jobs.await(seen, team_->spin);
        if (team_->stopping.load(std::memory_order_relaxed)) return;
        job_(context_, worker);
        worker.barrier();
    }
}

}  // namespace llmd
