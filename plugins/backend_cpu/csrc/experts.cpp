#include "experts.hpp"

#include <algorithm>
#include <limits>

#include "operands.hpp"

namespace llmd {

ExpertSizes expert_sizes(const Weights& weights, const StageLimits& limits) {
    ExpertSizes most;
    for (const Op& op : weights.program.ops) {
        if (op.kind == OpKind::kRouter) {
            most.products = std::max(most.products, limits.max_rows * weights.matrix(op.weights.at(0)).rows);
        }
        if (op.kind != OpKind::kExperts) continue;
        const Matrix& down = weights.matrix(op.weights.at(4));
        const int64_t rows = limits.max_rows * op.ints.at(1);
        most.rows = std::max(most.rows, rows);
        most.hidden = std::max(most.hidden, rows * down.rows);
        most.inner = std::max(most.inner, rows * down.cols);
    }
    return most;
}

ExpertsCall::ExpertsCall(const Operands& of, const Bindings& to)
    : routes_(of.input(1)),
      out_(of.output(0)),
      num_experts_(of.members(4)),
      hidden_(of.output_width(0)),
      inner_(of.matrix(4).cols),
      top_k_(of.integer(1)),
      gated_(of.has_weight(0)),
      rows_(to.expert_rows),
      converted_(to.converted),
      unpacked_(to.unpacked),
      cache_(to.weights.expert_cache()),
      cached_(cache_ == nullptr ? nullptr : cache_->of_stack(of.weight(4))),
      firsts_(static_cast<size_t>(num_experts_) + 1),
      next_(static_cast<size_t>(num_experts_)) {
    require_consistent(of.input_width(1) == num_experts_, "a row must have a route for each expert");
    require_consistent(of.input_width(0) == hidden_,
                       "the input and output of experts must have the same width");
    require_consistent(top_k_ > 0 && top_k_ <= num_experts_, "a row must use some of the experts");
    const float limit = of.number(0);
    gate_ = {gated_ ? rows_.gate : rows_.up,
             rows_.up,
             rows_.up,
             0,
             activation_of(of),
             limit > 0.0F ? limit : std::numeric_limits<float>::infinity(),
             of.number(1)};
    if (gated_) add_product(inputs_, of, to, 0, of.input(0), true, rows_.gate, hidden_);
    add_product(inputs_, of, to, 2, of.input(0), true, rows_.up, hidden_);
    add_product(down_, of, to, 4, rows_.up, false, rows_.outputs, inner_);
}

void ExpertsCall::add_product(std::vector<Pass>& passes, const Operands& of, const Bindings& to,
                              size_t weight, const float* x, bool gathers, float* out, int64_t cols) {
    const Matrix& first = of.matrix(weight);
    require_consistent(of.members(weight) == num_experts_, "each expert must have all matrices");
    Product product{&first, nullptr, out};
    const int64_t rows = gathers ? inner_ : hidden_;
    for (int64_t e = 0; e < num_experts_; ++e) {
        const Matrix& matrix = product.experts[e];
        require_consistent(matrix.rows == rows && matrix.cols == cols && matrix.format == first.format &&
                               matrix.integer == first.integer,
                           "the matrices of all experts must have the same shape and format");
    }
    product.biases = of.vector(weight + 1, num_experts_ * rows);
    const InputForm form = bind_convert(x, first, to).form;
    const auto same = [&](const Pass& pass) { return pass.form == form; };
    auto pass = std::find_if(passes.begin(), passes.end(), same);
    if (pass == passes.end()) pass = passes.insert(passes.end(), {{}, x, gathers, cols, form, {}, {}, {}});
    pass->products.push_back(product);
}

// Groups the rows of the step by expert.
void ExpertsCall::assign(int64_t rows) {
    const auto each_route = [&](int64_t row, auto&& f) {
        const float* routes = routes_ + row * num_experts_;
        int64_t found = 0;
        for (int64_t e = 0; e < num_experts_ && found < top_k_; ++e) {
            if (routes[e] != 0.0F) f(static_cast<size_t>(e), found++, routes[e]);
        }
        return found;
    };
    std::fill(firsts_.begin(), firsts_.end(), 0);
    for (int64_t row = 0; row < rows; ++row) {
        each_route(row, [&](size_t expert, int64_t, float) { ++firsts_[expert + 1]; });
    }
    for (size_t e = 0; e < next_.size(); ++e) {
        firsts_[e + 1] += firsts_[e];
        next_[e] = firsts_[e];
    }
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t count = each_route(row, [&](size_t expert, int64_t i, float weight) {
            const int32_t place = next_[expert]++;
            rows_.row_numbers[place] = static_cast<int32_t>(row);
            rows_.places[row * top_k_ + i] = place;
            rows_.weights[row * top_k_ + i] = weight;
        });
        rows_.counts[row] = static_cast<int32_t>(count);
    }
    step_rows_ = rows;
}

// Lists what is to be computed with a range of experts.
void ExpertsCall::arrange(int64_t first_expert, int64_t last_expert) {
    first_row_ = firsts_[static_cast<size_t>(first_expert)];
    num_rows_ = firsts_[static_cast<size_t>(last_expert)] - first_row_;
    for (Pass& pass : inputs_) arrange(pass, first_expert, last_expert);
    for (Pass& pass : down_) arrange(pass, first_expert, last_expert);
}

// Lists the conversions and products of a pass.
void ExpertsCall::arrange(Pass& pass, int64_t first_expert, int64_t last_expert) {
    const bool shares = pass.gathers && step_rows_ == 1;  // all experts take the same row
    const bool floats = pass.form.kind == InputKind::kFloat;
    const float* contiguous = pass.gathers && !shares ? rows_.inputs : pass.x;
    pass.converts.clear();
    pass.parts.clear();
    pass.targets.clear();
    pass.targets.reserve(pass.products.size() * static_cast<size_t>(num_experts_));
    int64_t terms = 0;
    for (int64_t e = first_expert; e < last_expert; ++e) {
        const int64_t first = firsts_[static_cast<size_t>(e)];
        const int64_t rows = firsts_[static_cast<size_t>(e) + 1] - first;
        if (rows == 0) continue;
        const int64_t from = shares ? 0 : first;
        const ConvertedRows converted = RowForm{pass.cols, pass.form}.from(converted_, from, terms);
        if (!floats && (!shares || pass.converts.empty())) {
            const float* x = pass.gathers ? pass.x : pass.x + first * pass.cols;
            const int32_t* numbers = pass.gathers ? rows_.row_numbers + first : nullptr;
            pass.converts.push_back({x, rows, pass.cols, pass.form, converted, numbers});
        }
        if (!shares && pass.form.kind == InputKind::kBf16Terms)
            terms += TermLayout{rows, pass.cols}.numbers();
        const LinearTarget* targets = pass.targets.data() + pass.targets.size();
        for (const Product& product : pass.products) {
            const Matrix& matrix = product.experts[e];
            const float* bias = product.biases == nullptr ? nullptr : product.biases + e * matrix.rows;
            pass.targets.push_back({matrix, bias, product.out + first * matrix.rows});
        }
        pass.parts.push_back({floats ? contiguous + from * pass.cols : nullptr, rows, pass.cols, targets,
                              static_cast<int64_t>(pass.products.size()), converted,
                              floats ? unpacked_ : nullptr});
    }
}

void ExpertsCall::multiply(const Pass& pass, const Kernels& kernels, Crew& crew) const {
    if (pass.form.kind != InputKind::kFloat) {
        crew.run_small(kernels.convert_batch,
                       ConvertBatchArgs{pass.converts.data(), static_cast<int64_t>(pass.converts.size())});
    } else if (pass.gathers && step_rows_ > 1) {
        crew.run_small(kernels.gather, GatherArgs{pass.x, pass.cols, rows_.row_numbers + first_row_,
                                                  num_rows_, rows_.inputs + first_row_ * pass.cols});
    }
    crew.share(kernels.linear_batch,
               LinearBatchArgs{pass.parts.data(), static_cast<int64_t>(pass.parts.size())});
}

void ExpertsCall::activate(const Kernels& kernels, Crew& crew) const {
    const int64_t first = first_row_ * inner_;
    ExpertGateArgs args = gate_;
    args.gate += first;
    args.up += first;
    args.out += first;
    args.count = num_rows_ * inner_;
    if (gated_) return crew.run_small(kernels.expert_gate, args);
    crew.run_small(kernels.activate, ActivateArgs{args.up, args.out, args.count, args.activation});
}

void ExpertsCall::multiply_all(const Kernels& kernels, Crew& crew) const {
    for (const Pass& pass : inputs_) multiply(pass, kernels, crew);
    activate(kernels, crew);
    for (const Pass& pass : down_) multiply(pass, kernels, crew);
}

void ExpertsCall::add_up(const Kernels& kernels, Crew& crew) const {
    crew.run_small(kernels.weighted_sum, WeightedSumArgs{rows_.outputs, out_, step_rows_, hidden_,
                                                         rows_.counts, rows_.places, rows_.weights, top_k_});
}

void ExpertsCall::run(int64_t rows, const Kernels& kernels, Crew& crew) {
    crew.run_once([&] {
        assign(rows);
        arrange(0, num_experts_);
    });
    multiply_all(kernels, crew);
    add_up(kernels, crew);
}

void ExpertsCall::run_cached(int64_t rows, const Kernels& kernels, ThreadPool& pool) {
    struct Job {
        const ExpertsCall& call;
        const Kernels& kernels;
        Worker solo;
        bool is_last;
    } job{*this, kernels, pool.solo(), false};
    const auto run = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        Crew crew(worker, job.solo, job.call.step_rows_);
        job.call.multiply_all(job.kernels, crew);
        if (job.is_last) job.call.add_up(job.kernels, crew);
    };
    assign(rows);
    std::vector<int32_t> used;
    for (int32_t e = 0; e < num_experts_; ++e) {
        const auto at = static_cast<size_t>(e);
        if (firsts_[at + 1] > firsts_[at]) used.push_back(e);
    }
    size_t done = 0;
    do {
        const size_t held = cache_->hold(*cached_, used.data() + done, used.size() - done);
        if (held > 0)
            arrange(used[done], used[done + held - 1] + 1);
        else
            arrange(0, 0);
        done += held;
        job.is_last = done == used.size();
        pool.run(run, &job);
    } while (!job.is_last);
}

}  // namespace llmd
