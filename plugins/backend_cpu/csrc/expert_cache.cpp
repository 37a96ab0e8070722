#include "expert_cache.hpp"

#include <algorithm>
#include <utility>

#include "weights.hpp"

namespace llmd {

namespace {

int64_t scale_bytes(const Matrix& matrix) {
    const bool scaled = matrix.format == Format::kFloat8;
    return scaled ? whole_lines(matrix.rows * matrix.float8_groups() * static_cast<int64_t>(sizeof(float)))
                  : 0;
}

// Bytes of a matrix with its scales.
int64_t place_bytes(const Matrix& matrix) { return whole_lines(num_bytes(matrix)) + scale_bytes(matrix); }

}  // namespace

void ExpertCache::add(std::vector<int64_t> weights, std::vector<Matrix*> firsts, int64_t members) {
    auto experts = std::make_shared<Experts>();
    for (const Matrix* matrix : firsts) experts->bytes_ += place_bytes(*matrix);
    largest_ = std::max(largest_, experts->bytes_);
    total_ += members * experts->bytes_;
    for (const int64_t weight : weights) experts_[weight] = experts;
    experts->weights_ = std::move(weights);
    experts->firsts_ = std::move(firsts);
    experts->places_.assign(static_cast<size_t>(members), held_.end());
}

ExpertCache::Experts* ExpertCache::of_stack(int64_t weight) const {
    const auto found = experts_.find(weight);
    return found == experts_.end() ? nullptr : found->second.get();
}

bool ExpertCache::is_held(const Experts& experts, int64_t member) const {
    return experts.places_[static_cast<size_t>(member)] != held_.end();
}

size_t ExpertCache::hold(Experts& experts, const int32_t* members, size_t count) {
    // What is in memory and will be used soon is given back last, also if it has to wait for another call.
    for (size_t i = count; i-- > 0;) {
        if (!is_held(experts, members[i])) continue;
        held_.splice(held_.begin(), held_, experts.places_[static_cast<size_t>(members[i])]);
    }
    const auto most = static_cast<size_t>(std::max<int64_t>(budget_ / experts.bytes_, 1));
    const size_t fitting = std::min(count, most);
    std::vector<int64_t> missing;
    for (size_t i = 0; i < fitting; ++i) {
        if (!is_held(experts, members[i])) missing.push_back(members[i]);
    }
    hits_ += static_cast<int64_t>(fitting - missing.size());
    misses_ += static_cast<int64_t>(missing.size());
    if (missing.empty()) return fitting;
    try {
        for (const int64_t member : missing) allocate(experts, member);
        fill_(experts.weights_, missing);
    } catch (...) {
        for (const int64_t member : missing) {
            if (is_held(experts, member)) drop(experts.places_[static_cast<size_t>(member)]);
        }
        throw;
    }
    read_bytes_ += static_cast<int64_t>(missing.size()) * experts.bytes_;
    return fitting;
}

void ExpertCache::allocate(Experts& experts, int64_t member) {
    Buffer memory = room_for(experts.bytes_);
    auto* at = memory.as<uint8_t>();
    for (Matrix* first : experts.firsts_) {
        Matrix& matrix = first[member];
        matrix.data = at;
        at += whole_lines(num_bytes(matrix));
        if (matrix.format == Format::kFloat8) matrix.scales = reinterpret_cast<const float*>(at);
        at += scale_bytes(matrix);
    }
    held_.push_front({&experts, member, std::move(memory)});
    experts.places_[static_cast<size_t>(member)] = held_.begin();
    held_bytes_ += experts.bytes_;
}

void ExpertCache::drop(std::list<Held>::iterator expert) {
    Experts& experts = *expert->experts;
    for (Matrix* first : experts.firsts_) {
        first[expert->member].data = nullptr;
        first[expert->member].scales = nullptr;
    }
    experts.places_[static_cast<size_t>(expert->member)] = held_.end();
    held_bytes_ -= experts.bytes_;
    held_.erase(expert);
}

// Gives back the least recently used experts until there is room, and returns memory of this size: that of
// one of them if it has the same size, since new memory takes time to be zeroed.
Buffer ExpertCache::room_for(int64_t bytes) {
    Buffer found;
    while (!held_.empty() && held_bytes_.load() + bytes > budget_) {
        const auto last = std::prev(held_.end());
        if (last->memory.size() == static_cast<size_t>(bytes)) found = std::move(last->memory);
        drop(last);
    }
    return found.size() > 0 ? std::move(found) : Buffer(static_cast<size_t>(bytes));
}

ExpertCounts ExpertCache::counts() const {
    return {hits_.load(), misses_.load(), read_bytes_.load(), held_bytes_.load()};
}

}  // namespace llmd
