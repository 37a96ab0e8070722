#include "weights.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace llmd {

namespace {

constexpr int64_t kReadMultiple = 1024;  // `Kernels::read` reads multiples of this
constexpr int64_t kLineBytes = 64;

int64_t item_bytes(Format format) { return format == Format::kF32 ? 4 : format == Format::kFloat8 ? 1 : 2; }

void require(bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument("integer weights must " + what);
}

void require_kernel(bool exists, const std::string& format) {
    if (!exists) throw std::invalid_argument("there is no kernel for integer weights " + format);
}

void check_format(const IntegerFormat& format) {
    const int32_t bits = format.bits;
    require_kernel((bits >= 2 && bits <= 6) || bits == 8, "of " + std::to_string(bits) + " bits");
    require(!format.has_book || bits == 4, "have 4 bits if they have a code book");
    require_kernel(
        format.in_int8 || scales_suit(bits, format.has_book, format.two_levels(), format.has_minimum),
        "of " + std::to_string(bits) + " bits with such scales");
    const int64_t size = format.group_size;
    require_kernel(!format.in_int8 || (bits <= 4 && size == (bits == 2 ? 16 : 32) && format.has_minimum &&
                                       format.two_levels()),
                   "in int8 with a fine scale for each " + std::to_string(size) + " inputs");
    const int64_t shared = format.activation_group();
    require_kernel(size > 0 && size % kSegmentInputs == 0 && shared % size == 0,
                   "in groups of " + std::to_string(size) + " inputs of " + std::to_string(shared));
    require_kernel(
        !format.two_levels() || format.in_int8 || (size == fine_group(bits) && shared == kMostGroupInputs),
        "with a fine scale for each " + std::to_string(size) + " inputs of " + std::to_string(shared));
    require_kernel(format.outliers == 0 || (format.outliers == kOutliers && bits == 8 &&
                                            size == kMostGroupInputs && !format.two_levels()),
                   "with " + std::to_string(format.outliers) + " outliers");
    require_kernel(shared % kSlabInputs == 0 && shared <= kMostGroupInputs,
                   "with a scale for each " + std::to_string(shared) + " inputs");
}

void check_scales(const IntegerMatrix& matrix, const GroupScales& scales) {
    const IntegerFormat& format = matrix.format;
    const int64_t coarse = pieces(matrix.cols, format.activation_group());
    require(scales.coarse_columns == coarse || scales.coarse_columns == 1,
            "have a scale for each group, or one for each row");
    require(!format.two_levels() || scales.fine_columns == pieces(matrix.cols, format.group_size),
            "have a fine scale for each group");
    if (!scales.wide) return;
    const auto* values = static_cast<const uint32_t*>(scales.coarse);
    const bool fits = std::all_of(values, values + matrix.rows * scales.coarse_columns,
                                  [](uint32_t bits) { return (bits & 0xffffU) == 0; });
    require(fits, "have float32 scales that are exact in bf16");
}

void check_outliers(const IntegerMatrix& matrix) {
    const bool any = matrix.format.outliers > 0;
    require(any == (matrix.outlier_columns != nullptr) && any == (matrix.outlier_residuals != nullptr),
            "have outliers if the format has outliers, and only then");
    if (!any) return;
    const int64_t groups = pieces(matrix.cols, matrix.format.group_size);
    const int64_t in_last = matrix.cols - (groups - 1) * matrix.format.group_size;
    for (int64_t row = 0; row < matrix.rows; ++row) {
        const uint8_t* last = matrix.outlier_columns + ((row + 1) * groups - 1) * kOutliers;
        require(std::all_of(last, last + kOutliers, [&](uint8_t column) { return column < in_last; }),
                "have their outliers inside of their rows");
    }
}

}  // namespace

void check_groups(const Matrix& matrix) {
    const bool whole_row = matrix.group_size >= matrix.cols;
    if (matrix.group_size > 0 && (whole_row || matrix.group_size % kPanelRows == 0)) return;
    throw std::invalid_argument("FP8 weights must not have groups of " + std::to_string(matrix.group_size) +
                                " inputs");
}

int64_t num_bytes(const Matrix& matrix) {
    if (matrix.format == Format::kInteger) {
        return pieces(matrix.rows, kPanelRows) * PanelLayout{matrix.cols, matrix.integer}.panel_bytes();
    }
    return matrix.rows * matrix.cols * item_bytes(matrix.format);
}

int64_t whole_lines(int64_t bytes) { return pieces(bytes, kLineBytes) * kLineBytes; }

void Weights::begin_weight(bool joins) {
    if (joins && firsts_.empty()) throw std::invalid_argument("the first weight has none before it to join");
    if (!joins) firsts_.push_back(matrices_.size());
    weights_.push_back(firsts_.size() - 1);
}

void Weights::add_matrix(Format format, int64_t rows, int64_t cols, const void* data, bool joins) {
    begin_weight(joins);
    matrices_.push_back({format, rows, cols, {}, data});
    ask_for_huge_pages(data, static_cast<size_t>(num_bytes(matrices_.back())));
}

void Weights::add_float8(const Matrix& matrix, bool joins) {
    check_groups(matrix);
    begin_weight(joins);
    matrices_.push_back(matrix);
    ask_for_huge_pages(matrix.data, static_cast<size_t>(num_bytes(matrix)));
}

void Weights::add_vector(Format format, int64_t count, const void* data) {
    // The embedding kernel does the widening: one row, token 0, scale 1.
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
        job.kernels.embed({&job.from, &row, 1, 0, job.from.cols, 1.0F, job.to}, worker);
    };
    pool.run(widen, &job);
    begin_weight(false);
    matrices_.push_back({Format::kF32, 1, count, {}, job.to});
    owned_.push_back(std::move(widened));
}

void Weights::add_integers(int64_t rows, int64_t cols, const IntegerFormat& format, bool joins) {
    check_format(format);
    begin_weight(joins);
    matrices_.push_back({Format::kInteger, rows, cols, format, nullptr});
    if (is_cached(matrices_.size() - 1)) return;
    panel_bytes_ += whole_lines(num_bytes(matrices_.back())) + strip_bytes(matrices_.size() - 1);
}

int64_t Weights::strip_bytes(size_t index) const {
    const Matrix& matrix = matrices_[index];
    const size_t weight = weights_[index];
    const bool integers = matrix.format == Format::kInteger;
    const bool whole = matrix.rows % (kStripPanels * kPanelRows) == 0;
    const bool zeros = weight < meets_zeros_.size() && meets_zeros_[weight];
    return integers && whole && zeros && !is_cached(index) ? whole_lines(num_bytes(matrix)) : 0;
}

void Weights::drop_strips() {
    for (size_t i = 0; i < matrices_.size(); ++i) panel_bytes_ -= strip_bytes(i);
    meets_zeros_.clear();
}

void Weights::allocate_panels() {
    panels_ = Buffer(static_cast<size_t>(panel_bytes_));
    place_panels(panels_.as<uint8_t>());
}

void Weights::place_panels(uint8_t* panels) {
    first_panel_ = panels;
    for (size_t i = 0; i < matrices_.size(); ++i) {
        Matrix& matrix = matrices_[i];
        if (matrix.format != Format::kInteger || is_cached(i)) continue;
        matrix.data = panels;
        panels += whole_lines(num_bytes(matrix));
        matrix.strips = strip_bytes(i) > 0 ? panels : nullptr;
        panels += strip_bytes(i);
    }
}

// Packs all panels of a matrix, and all strips if it has them, on all threads. `rows_of(first row,
// thread)` returns a matrix that has the rows of a panel, and the index of the first of them in it.
template <class RowsOf>
void Weights::pack_all(const Matrix& place, const RowsOf& rows_of) {
    struct Job {
        const Kernels& kernels;
        const Matrix& place;
        const RowsOf& rows_of;
        PanelLayout layout;
    } job{kernels, place, rows_of, {place.cols, place.integer}};
    const auto panels = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        auto* to = const_cast<uint8_t*>(static_cast<const uint8_t*>(job.place.data));
        for (int64_t p; (p = worker.take(1)) < pieces(job.place.rows, kPanelRows);) {
            const auto [from, first_row] = job.rows_of(p * kPanelRows, worker.id);
            job.kernels.pack_panel(from, first_row, to + p * job.layout.panel_bytes());
        }
    };
    const auto strips = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        const int64_t bytes = kStripPanels * job.layout.panel_bytes();
        auto* to = const_cast<uint8_t*>(static_cast<const uint8_t*>(job.place.strips));
        for (int64_t strip; (strip = worker.take(1)) < job.place.rows / (kStripPanels * kPanelRows);) {
            std::memset(to + strip * bytes, 0, static_cast<size_t>(bytes));
            for (int64_t p = 0; p < kStripPanels; ++p) {
                const auto [from, first_row] =
                    job.rows_of((strip * kStripPanels + p) * kPanelRows, worker.id);
                job.kernels.pack_strip_panel(from, first_row, p, to + strip * bytes);
            }
        }
    };
    pool.run(panels, &job);
    if (place.strips != nullptr) pool.run(strips, &job);
}

const Matrix& Weights::place_of(int64_t index, int64_t member, int64_t rows, int64_t cols) const {
    const Matrix& place = matrix(index, member);
    require(place.format == Format::kInteger && place.data != nullptr, "have been added, and have panels");
    require(place.rows == rows && place.cols == cols, "have the shape that they were added with");
    return place;
}

void Weights::pack(int64_t index, const IntegerMatrix& from, int64_t member) {
    const Matrix& place = place_of(index, member, from.rows, from.cols);
    require(place.integer == from.format, "have the format that they were added with");
    check_scales(from, from.scales);
    if (from.format.has_minimum) check_scales(from, from.minimums);
    check_outliers(from);
    pack_all(place, [&](int64_t first_row, int) {
        return std::pair<const IntegerMatrix&, int64_t>{from, first_row};
    });
}

bool Weights::pack_blocks(int64_t index, const BlockMatrix& from, int64_t member) {
    const Matrix& place = place_of(index, member, from.rows, from.cols);
    const IntegerFormat& format = place.integer;
    require(format.bits == from.layout.bits && format.group_size == from.layout.group_size &&
                format.has_minimum == (from.layout.minimum >= 0) &&
                format.two_levels() == (from.layout.fine != FineScales::kNone),
            "have the format that they were added with");
    std::vector<DecodedRows> decoded;
    decoded.reserve(static_cast<size_t>(pool.size()));
    for (int i = 0; i < pool.size(); ++i) decoded.emplace_back(from.layout, format, from.cols);
    std::atomic<bool> all_finite{true};
    pack_all(place, [&](int64_t first_row, int thread) {
        DecodedRows& rows = decoded[static_cast<size_t>(thread)];
        if (!rows.decode(from, first_row)) all_finite.store(false, std::memory_order_relaxed);
        return std::pair<const IntegerMatrix&, int64_t>{rows.matrix(), 0};
    });
    return all_finite.load();
}

Packing Weights::packing() const {
    bool strips = false;
    for (size_t i = 0; i < matrices_.size(); ++i) strips |= strip_bytes(i) > 0;
    return {first_panel_, panel_bytes_, strips ? kStripLayoutName : kPanelLayoutName};
}

bool Weights::read_packed(const std::string& path) { return llmd::read_packed(path, packing(), pool); }

bool Weights::map_packed(const std::string& path, bool any_pages) {
    Packing mapped = packing();
    Buffer file = llmd::map_packed(path, mapped, any_pages ? Pages::kAny : Pages::kHuge, pool);
    if (mapped.data == nullptr) return false;
    panels_ = std::move(file);
    place_panels(mapped.data);
    return true;
}

void Weights::write_packed(const std::string& path) const { llmd::write_packed(path, packing(), stopped_); }

int64_t Weights::members(int64_t index) const {
    const auto place = static_cast<size_t>(index);
    if (index < 0 || place >= firsts_.size()) {
        throw std::invalid_argument("the program uses weight " + std::to_string(index) + ", but there are " +
                                    std::to_string(firsts_.size()));
    }
    const size_t end = place + 1 < firsts_.size() ? firsts_[place + 1] : matrices_.size();
    return static_cast<int64_t>(end - firsts_[place]);
}

const Matrix& Weights::matrix(int64_t index, int64_t member) const {
    const int64_t count = members(index);
    if (member < 0 || member >= count) {
        throw std::invalid_argument("weight " + std::to_string(index) + " has " + std::to_string(count) +
                                    " members, but not number " + std::to_string(member));
    }
    return matrices_[firsts_[static_cast<size_t>(index)] + static_cast<size_t>(member)];
}

const float* Weights::vector(int64_t index, int64_t count) const {
    if (index < 0) return nullptr;
    const Matrix& found = matrix(index);
    if (found.format != Format::kF32 || found.rows != 1 || found.cols != count) {
        throw std::invalid_argument("weight " + std::to_string(index) +
                                    " is not a float32 vector of length " + std::to_string(count));
    }
    return static_cast<const float*>(found.data);
}

std::vector<Matrix> Weights::factors() const {
    std::vector<Matrix> found;
    for (const Op& op : program.ops) {
        const bool experts = op.kind == OpKind::kExperts;
        const bool by_head = op.kind == OpKind::kHeadLinear;
        if (op.kind != OpKind::kLinear && op.kind != OpKind::kHead && !experts && !by_head) continue;
        for (size_t i = 0; i < op.weights.size(); i += 2) {
            if (op.weights[i] < 0) continue;
            const int64_t used = experts ? op.ints.at(1) : by_head ? members(op.weights[i]) : 1;
            for (int64_t m = 0; m < used; ++m) {
                const Matrix& factor = matrix(op.weights[i], m);
                if (factor.data != nullptr) found.push_back(factor);
            }
        }
    }
    return found;
}

int64_t Weights::read_factors() const {
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
