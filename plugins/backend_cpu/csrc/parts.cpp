#include "parts.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "q8_layout.hpp"

namespace llmd {

namespace {

constexpr int64_t kReadMultiple = 1024;  // of what `Kernels::read` reads

int64_t num_panels(int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

int64_t num_bytes(const Matrix& matrix) {
    if (matrix.format == Format::kQ8) {
        return num_panels(matrix.rows) * Q8Layout{matrix.cols, matrix.group_size}.panel_bytes();
    }
    return matrix.rows * matrix.cols * (matrix.format == Format::kF32 ? 4 : 2);
}

}  // namespace

void Parts::add_matrix(Format format, int64_t rows, int64_t cols, const void* data) {
    matrices_.push_back({format, rows, cols, 0, data});
}

void Parts::add_vector(Format format, int64_t count, const void* data) {
    // The embedding kernel is what widens: one row, token 0, scale 1.
    struct Job {
        const Kernels& kernels;
        Matrix from;
        float* to;
    };
    Buffer widened(sizeof(float) * static_cast<size_t>(count));
    Job job{kernels, {format, 1, count, 0, data}, widened.as<float>()};
    const auto widen = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        const int32_t row = 0;
        job.kernels.embed({&job.from, &row, 1, 1.0F, job.to}, worker);
    };
    pool.run(widen, &job);
    matrices_.push_back({Format::kF32, 1, count, 0, job.to});
    owned_.push_back(std::move(widened));
}

void Parts::add_int8(const Int8Matrix& matrix) {
    struct Job {
        const Kernels& kernels;
        const Int8Matrix& from;
        uint8_t* to;
    };
    if (matrix.group_size <= 0 || matrix.group_size % 4 != 0) {
        throw std::invalid_argument("groups of " + std::to_string(matrix.group_size) +
                                    " are no multiple of 4");
    }
    Matrix packed{Format::kQ8, matrix.rows, matrix.cols, matrix.group_size, nullptr};
    Buffer panels(static_cast<size_t>(num_bytes(packed)));
    packed.data = panels.as<void>();
    Job job{kernels, matrix, panels.as<uint8_t>()};
    const auto pack = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        job.kernels.pack_q8(job.from, job.to, worker);
    };
    pool.run(pack, &job);
    matrices_.push_back(packed);
    owned_.push_back(std::move(panels));
}

const Matrix& Parts::matrix(int64_t index) const {
    if (index < 0 || static_cast<size_t>(index) >= matrices_.size()) {
        throw std::invalid_argument("the program names weight " + std::to_string(index) + " of " +
                                    std::to_string(matrices_.size()));
    }
    return matrices_[static_cast<size_t>(index)];
}

const float* Parts::vector(int64_t index, int64_t count) const {
    if (index < 0) return nullptr;
    const Matrix& found = matrix(index);
    if (found.format != Format::kF32 || found.rows != 1 || found.cols != count) {
        throw std::invalid_argument("weight " + std::to_string(index) + " is no vector of " +
                                    std::to_string(count));
    }
    return static_cast<const float*>(found.data);
}

std::vector<Matrix> Parts::factors() const {
    std::vector<Matrix> found;
    for (const Op& op : program.ops) {
        if (op.kind != OpKind::kLinear && op.kind != OpKind::kHead) continue;
        for (size_t i = 0; i < op.weights.size(); i += 2) found.push_back(matrix(op.weights[i]));
    }
    return found;
}

int64_t Parts::read_factors() const {
    struct Job {
        const Kernels& kernels;
        std::vector<Matrix> matrices;
        int64_t piece;
    };
    constexpr int64_t kPiece = int64_t{1} << 18;
    Job job{kernels, factors(), kPiece};
    const auto run = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        for (const Matrix& matrix : job.matrices) {
            const auto* data = static_cast<const uint8_t*>(matrix.data);
            const int64_t bytes = num_bytes(matrix) / kReadMultiple * kReadMultiple;
            for (int64_t at; (at = worker.take(job.piece)) < bytes;) {
                volatile uint64_t used = job.kernels.read(data + at, std::min(job.piece, bytes - at));
                static_cast<void>(used);
            }
            worker.barrier();
        }
    };
    pool.run(run, &job);
    int64_t total = 0;
    for (const Matrix& matrix : job.matrices) total += num_bytes(matrix);
    return total;
}

}  // namespace llmd
