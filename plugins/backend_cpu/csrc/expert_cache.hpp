// Experts of which only some are in memory: those that steps used last.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "buffer.hpp"
#include "matrix.hpp"

namespace llmd {

struct ExpertCounts {
    int64_t hits;        // experts that a step found in memory
    int64_t misses;      // experts that a step had to wait for
    int64_t read_bytes;  // of the experts that were missing, as they are in memory
    int64_t held_bytes;  // in memory now
};

// One thread uses it at a time; `counts` may be called meanwhile.
class ExpertCache {
  public:
    // Fills the matrices of some members of the stacks of an op, whose memory is allocated. It may throw.
    using Fill =
        std::function<void(const std::vector<int64_t>& weights, const std::vector<int64_t>& members)>;

    // Holds at most `budget` bytes, but always one expert.
    ExpertCache(int64_t budget, Fill fill) : budget_(budget), fill_(std::move(fill)) {}
    ExpertCache(const ExpertCache&) = delete;
    ExpertCache& operator=(const ExpertCache&) = delete;

    // Adds the experts of an op. `weights` are its stacks, `firsts` the first matrices of these, of which
    // each has `members`.
    void add(std::vector<int64_t> weights, std::vector<Matrix*> firsts, int64_t members);
    // Bytes of the largest expert.
    int64_t largest() const { return largest_; }
    // Bytes of all experts.
    int64_t total() const { return total_; }

    // The experts of an op.
    class Experts;
    // Those of the op that has this stack; null if they are not here.
    Experts* of_stack(int64_t weight) const;

    // Makes some of these experts be in memory, from the first of them on, until the next call. Returns how
    // many: all if there is room for them, and at least one.
    size_t hold(Experts& experts, const int32_t* members, size_t count);

    ExpertCounts counts() const;

  private:
    struct Held {
        Experts* experts;
        int64_t member;
        Buffer memory;
    };

    bool is_held(const Experts& experts, int64_t member) const;
    void allocate(Experts& experts, int64_t member);
    void drop(std::list<Held>::iterator expert);
    Buffer room_for(int64_t bytes);

    int64_t budget_;
    Fill fill_;
    int64_t largest_ = 0;
    int64_t total_ = 0;
    std::list<Held> held_;                                 // the last used first
    std::map<int64_t, std::shared_ptr<Experts>> experts_;  // by each of their stacks
    std::atomic<int64_t> hits_{0};
    std::atomic<int64_t> misses_{0};
    std::atomic<int64_t> read_bytes_{0};
    std::atomic<int64_t> held_bytes_{0};
};

class ExpertCache::Experts {
    friend class ExpertCache;
    std::vector<int64_t> weights_;
    std::vector<Matrix*> firsts_;
    int64_t bytes_ = 0;                              // of one expert
    std::vector<std::list<Held>::iterator> places_;  // of each member; the end of the list: not in memory
};

}  // namespace llmd
