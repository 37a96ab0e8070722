#include "adapters.hpp"

#include <algorithm>
#include <cstring>

#include "operands.hpp"

namespace llmd {

namespace {

// Rows of a part. The rows of a long prompt are several parts, which threads share.
constexpr int64_t kPartRows = 32;

bool is_plain(const Matrix& matrix) {
    return matrix.format != Format::kInteger && matrix.format != Format::kFloat8;
}

}  // namespace

int64_t num_adapters(const Program& program) {
    for (const Op& op : program.ops) {
        if (op.kind == OpKind::kAdapt) return op.ints.at(0);
    }
    return 0;
}

int64_t adapter_middle(const Weights& weights, const StageLimits& limits) {
    int64_t most = 0;
    for (const Op& op : weights.program.ops) {
        if (op.kind != OpKind::kAdapt) continue;
        const auto adapters = static_cast<size_t>(op.ints.at(0));
        int64_t ranks = 0;
        for (size_t first = 0; first < op.weights.size(); first += 2 * adapters) {
            int64_t rank = 0;
            for (size_t i = first; i < first + 2 * adapters; i += 2) {
                if (op.weights.at(i) >= 0) rank = std::max(rank, weights.matrix(op.weights[i]).rows);
            }
            ranks += rank;
        }
        most = std::max(most, limits.max_rows * ranks);
    }
    return most;
}

AdaptCall::AdaptCall(const Operands& of, const Bindings& to)
    : x_(of.input(0)), cols_(of.input_width(0)), middle_(to.adapter_middle), max_rows_(to.limits.max_rows) {
    const auto adapters = static_cast<size_t>(of.integer(0));
    for (size_t i = 0; i + 1 < of.num_inputs(); ++i) {
        Output output{of.input(i + 1), of.output(i), of.output_width(i), 0, {}};
        require_consistent(of.input_width(i + 1) == output.width,
                           "what adapters change must have the width of its output");
        for (size_t k = i * adapters; k < (i + 1) * adapters; ++k) {
            Product product{{}, {}, of.number(k), of.has_weight(2 * k)};
            if (product.exists) {
                product.a = of.matrix(2 * k);
                product.b = of.matrix(2 * k + 1);
                require_consistent(is_plain(product.a) && is_plain(product.b), "adapters must be plain");
                require_consistent(product.a.cols == cols_ && product.b.rows == output.width &&
                                       product.a.rows == product.b.cols,
                                   "the matrices of an adapter must have the widths of input and output");
                product.b = turned(product.b);
                output.rank = std::max(output.rank, product.a.rows);
            }
            output.products.push_back(product);
        }
        outputs_.push_back(std::move(output));
    }
}

// A copy with rows as columns. Adapters are small, and this happens once for each stage.
Matrix AdaptCall::turned(const Matrix& matrix) {
    const size_t width = matrix.format == Format::kF32 ? 4 : 2;
    const auto rows = static_cast<size_t>(matrix.rows);
    const auto cols = static_cast<size_t>(matrix.cols);
    std::vector<uint8_t>& to = turned_.emplace_back(rows * cols * width);
    const auto* from = static_cast<const uint8_t*>(matrix.data);
    for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < cols; ++c) {
            std::memcpy(to.data() + (c * rows + r) * width, from + (r * cols + c) * width, width);
        }
    }
    return {matrix.format, matrix.cols, matrix.rows, {}, to.data()};
}

// Lists the products of a step.
void AdaptCall::arrange(const Step& step) {
    runs_.clear();
    parts_.clear();
    runs_.reserve(static_cast<size_t>(step.sequences + step.rows / kPartRows + 1));
    for (int64_t s = 0; s < step.sequences; ++s) {
        const int32_t* end = step.adapters + s;
        if (*end >= 0 && std::find(step.adapters, end, *end) == end) add_parts(step, *end);
    }
}

// Lists the products of an adapter with the rows that have it, up to `kPartRows` in a part.
void AdaptCall::add_parts(const Step& step, int32_t adapter) {
    size_t first_run = runs_.size();
    int64_t rows = 0;
    const auto end_part = [&] {
        float* middle = middle_;
        for (const Output& output : outputs_) {
            if (first_run < runs_.size()) add_part(output, middle, static_cast<size_t>(adapter), first_run);
            middle += max_rows_ * output.rank;
        }
        first_run = runs_.size();
        rows = 0;
    };
    for (int64_t s = 0; s < step.sequences; ++s) {
        if (step.adapters[s] != adapter) continue;
        for (int64_t first = step.row_offsets[s]; first < step.row_offsets[s + 1];) {
            const int64_t last = std::min<int64_t>(step.row_offsets[s + 1], first + kPartRows - rows);
            runs_.push_back({first, last});
            rows += last - first;
            first = last;
            if (rows == kPartRows) end_part();
        }
    }
    end_part();
}

void AdaptCall::add_part(const Output& output, float* middle, size_t adapter, size_t first_run) {
    const Product& product = output.products.at(adapter);
    if (!product.exists) return;
    parts_.push_back({product.a, product.b, product.scale, runs_.data() + first_run,
                      static_cast<int64_t>(runs_.size() - first_run), middle, output.rank, output.out});
}

void AdaptCall::run(const Step& step, const Kernels& kernels, Crew& crew) {
    for (const Output& output : outputs_) {
        if (output.value == output.out) continue;
        crew.run_small(kernels.join,
                       JoinArgs{output.value, output.value, output.out, step.rows, 1, output.width, 0});
    }
    if (step.adapters == nullptr) return;
    crew.run_once([&] { arrange(step); });
    crew.share(kernels.adapt_middle,
               AdaptArgs{x_, cols_, parts_.data(), static_cast<int64_t>(parts_.size())});
    crew.share(kernels.adapt_outputs,
               AdaptArgs{x_, cols_, parts_.data(), static_cast<int64_t>(parts_.size())});
}

}  // namespace llmd
