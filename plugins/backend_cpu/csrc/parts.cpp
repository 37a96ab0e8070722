#include "parts.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
namespace llmd {

namespace {

constexpr int64_t kReadMultiple = 1024;  // of what `Kernels::read` reads

int64_t num_bytes(const Matrix& matrix) {
    if (matrix.format == Format::kInteger) {
        return pieces(matrix.rows, kPanelRows) * PanelLayout{matrix.cols, matrix.integer}.panel_bytes();
    }
    return matrix.rows * matrix.cols * (matrix.format == Format::kF32 ? 4 : 2);
}

void require(bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument("integer weights " + what);
}

void check_format(const IntegerFormat& format) {
    const int32_t bits = format.bits;
    require((bits >= 2 && bits <= 6) || bits == 8, "of " + std::to_string(bits) + " bits");
    require(!format.has_book || bits == 4, "have a code book for 4 bits alone");
    const int64_t size = format.group_size;
    const int64_t shared = format.activation_group();
    require(size > 0 && size % kUnitInputs == 0 && shared % size == 0,
            "in groups of " + std::to_string(size) + " inputs of " + std::to_string(shared));
    require(shared % kChunkInputs == 0 && shared <= kMostGroupInputs,
            "with a scale for each " + std::to_string(shared) + " inputs");
}

void check_scales(const IntegerMatrix& matrix, const GroupScales& scales) {
    const IntegerFormat& format = matrix.format;
    const int64_t coarse = pieces(matrix.cols, format.activation_group());
    require(scales.coarse_columns == coarse || scales.coarse_columns == 1, "have a scale for each group");
    require(!format.two_levels() || scales.fine_columns == pieces(matrix.cols, format.group_size),
            "have a fine scale for each group");
    if (!scales.wide) return;
    const auto* values = static_cast<const uint32_t*>(scales.coarse);
    const bool fits = std::all_of(values, values + matrix.rows * scales.coarse_columns,
                                  [](uint32_t bits) { return (bits & 0xffffU) == 0; });
    require(fits, "have float32 scales of no more than 8 bits");
}

}  // namespace

void Parts::add_matrix(Format format, int64_t rows, int64_t cols, const void* data) {
    matrices_.push_back({format, rows, cols, {}, data});
}

void Parts::add_vector(Format format, int64_t count, const void* data) {
    // The embedding kernel is what widens: one row, token 0, scale 1.
    struct Job {
        const Kernels& kernels;
        Matrix from;
        float* to;
    };
    Buffer widened(sizeof(float) * static_cast<size_t>(count));
    Job job{kernels, {format, 1, count, {}, data}, widened.as<float>()};
    const auto widen = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        const int32_t row = 0;
        job.kernels.embed({&job.from, &row, 1, 1.0F, job.to}, worker);
    };
    pool.run(widen, &job);
    matrices_.push_back({Format::kF32, 1, count, {}, job.to});
    owned_.push_back(std::move(widened));
}

void Parts::add_integers(const IntegerMatrix& matrix) {
    struct Job {
        const Kernels& kernels;
        const IntegerMatrix& from;
        uint8_t* to;
    };
    check_format(matrix.format);
    check_scales(matrix, matrix.scales);
    if (matrix.format.has_minimum) check_scales(matrix, matrix.minimums);
    Matrix packed{Format::kInteger, matrix.rows, matrix.cols, matrix.format, nullptr};
    Buffer panels(static_cast<size_t>(num_bytes(packed)));
    packed.data = panels.as<void>();
    Job job{kernels, matrix, panels.as<uint8_t>()};
    const auto pack = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        job.kernels.pack(job.from, job.to, worker);
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
