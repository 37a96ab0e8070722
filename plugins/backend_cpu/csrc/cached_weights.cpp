// Weights of which the experts are in an `ExpertCache`.

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "weights.hpp"

namespace llmd {

namespace {

// The stacks of an op of experts: its matrices are every other weight of it.
std::vector<int64_t> stacks_of(const Op& op) {
    std::vector<int64_t> found;
    for (size_t i = 0; i < op.weights.size(); i += 2) {
        if (op.weights[i] >= 0) found.push_back(op.weights[i]);
    }
    return found;
}

}  // namespace

void Weights::cache_experts(int64_t budget, ExpertCache::Fill fill) {
    cache_ = std::make_unique<ExpertCache>(budget, std::move(fill));
    for (const Op& op : program.ops) {
        if (op.kind != OpKind::kExperts) continue;
        for (const int64_t weight : stacks_of(op)) {
            caches_.resize(std::max(caches_.size(), static_cast<size_t>(weight) + 1));
            caches_[static_cast<size_t>(weight)] = true;
        }
    }
}

void Weights::add_absent(Format format, int64_t rows, int64_t cols, int64_t group_size, bool joins) {
    Matrix matrix{format, rows, cols, {}, nullptr};
    matrix.group_size = group_size;
    if (format == Format::kFloat8) check_groups(matrix);
    begin_weight(joins);
    matrices_.push_back(matrix);
}

void Weights::begin_cache() {
    for (const Op& op : program.ops) {
        if (op.kind != OpKind::kExperts) continue;
        std::vector<Matrix*> firsts;
        const std::vector<int64_t> stacks = stacks_of(op);
        const int64_t count = members(stacks.back());
        for (const int64_t weight : stacks) {
            if (members(weight) != count) {
                throw std::invalid_argument("each expert must have all matrices");
            }
            firsts.push_back(&matrices_[firsts_.at(static_cast<size_t>(weight))]);
        }
        cache_->add(stacks, firsts, count);
    }
}

void Weights::copy(int64_t index, const Matrix& from, int64_t member) {
    const Matrix& place = matrix(index, member);
    const bool fits = place.rows == from.rows && place.cols == from.cols && place.format == from.format &&
                      place.group_size == from.group_size;
    if (!fits || place.data == nullptr) {
        throw std::invalid_argument("the matrix of an expert must be that which was added");
    }
    struct Job {
        const uint8_t* from;
        uint8_t* to;
        int64_t bytes;
    } job{static_cast<const uint8_t*>(from.data),
          const_cast<uint8_t*>(static_cast<const uint8_t*>(place.data)), num_bytes(place)};
    const auto run = [](void* context, Worker& worker) {
        constexpr int64_t kPiece = int64_t{1} << 18;
        const Job& job = *static_cast<Job*>(context);
        for (int64_t at; (at = worker.take(kPiece)) < job.bytes;) {
            std::memcpy(job.to + at, job.from + at, static_cast<size_t>(std::min(kPiece, job.bytes - at)));
        }
    };
    pool.run(run, &job);
    if (place.format == Format::kFloat8) {
        const auto count = static_cast<size_t>(place.rows * place.float8_groups());
        std::memcpy(const_cast<float*>(place.scales), from.scales, sizeof(float) * count);
    }
}

bool Weights::is_cached(size_t index) const {
    const size_t weight = weights_[index];
    return weight < caches_.size() && caches_[weight];
}

}  // namespace llmd
