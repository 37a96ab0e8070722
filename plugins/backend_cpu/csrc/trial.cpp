#include "trial.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bf16_layout.hpp"
#include "buffer.hpp"

namespace llmd {

namespace {

constexpr int64_t kCols = 2048;
constexpr int64_t kOutputs = 1024;
constexpr int64_t kMatrixBytes = 2 * kCols * kOutputs;
constexpr int64_t kDecodeMatrices = 4;  // per measurement
constexpr int64_t kPrefillRows = 64;

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Trial {
  public:
    Trial(const Kernels& kernels, int64_t num_bytes)
        : kernels_(kernels),
          weights_(static_cast<size_t>(std::max(num_bytes / kMatrixBytes, kDecodeMatrices) * kMatrixBytes)),
          inputs_(sizeof(float) * kPrefillRows * kCols),
          outputs_(sizeof(float) * kPrefillRows * kOutputs),
          split_(sizeof(uint16_t) * static_cast<size_t>(TermLayout{kPrefillRows, kCols}.numbers())) {
        std::fill_n(inputs_.as<float>(), kPrefillRows * kCols, 0.5F);
    }

    // Byte 0x2c everywhere makes small positive numbers. Untouched pages would all share one page of
    // zeros.
    void fill(ThreadPool& pool, double budget_s) {
        const double start = seconds();
        const auto job = [](void* context, Worker& worker) {
            auto* matrix = static_cast<uint8_t*>(context);
            constexpr int64_t kPiece = int64_t{1} << 18;
            for (int64_t at; (at = worker.take(kPiece)) < kMatrixBytes;)
                std::memset(matrix + at, 0x2c, kPiece);
        };
        const auto most = static_cast<int64_t>(weights_.size()) / kMatrixBytes;
        while (filled_ < most && (filled_ < kDecodeMatrices || seconds() - start < budget_s)) {
            pool.run(job, weights_.as<uint8_t>() + filled_++ * kMatrixBytes);
        }
    }

    double decode_rate(ThreadPool& pool) {
        return static_cast<double>(kDecodeMatrices * kMatrixBytes) / linear(pool, kDecodeMatrices, 1);
    }
    double prefill_rate(ThreadPool& pool) {
        return 2.0 * kPrefillRows * kCols * kOutputs / linear(pool, 1, kPrefillRows);
    }

  private:
    // Seconds for linear ops with the next `matrices` matrices in memory.
    double linear(ThreadPool& pool, int64_t matrices, int64_t rows) {
        std::vector<LinearTarget> targets;
        for (int64_t i = 0; i < matrices; ++i) {
            LinearTarget target{};
            target.weight.format = Format::kBF16;
            target.weight.rows = kOutputs;
            target.weight.cols = kCols;
            target.weight.data = weights_.as<uint8_t>() + (next_++ % filled_) * kMatrixBytes;
            target.out = outputs_.as<float>();
            targets.push_back(target);
        }
        struct Job {
            const Kernels& kernels;
            const std::vector<LinearTarget>& targets;
            LinearArgs args;
        } job{kernels_, targets, {}};
        job.args.converted.bf16_terms = split_.as<uint16_t>();
        job.args.x = inputs_.as<float>();
        job.args.rows = rows;
        job.args.cols = kCols;
        job.args.num_targets = 1;
        const auto run = [](void* context, Worker& worker) {
            const Job& job = *static_cast<Job*>(context);
            LinearArgs args = job.args;
            const InputForm form = input_form(job.kernels, job.targets.front().weight);
            if (form.kind != InputKind::kFloat) {
                job.kernels.convert({args.x, args.rows, args.cols, form, args.converted}, worker);
                worker.barrier();
            }
            for (const LinearTarget& target : job.targets) {
                args.targets = &target;
                job.kernels.linear(args, worker);
                worker.barrier();
            }
        };
        const double start = seconds();
        pool.run(run, &job);
        return seconds() - start;
    }

    const Kernels& kernels_;
    Buffer weights_;
    Buffer inputs_;
    Buffer outputs_;
    Buffer split_;
    int64_t filled_ = 0;
    int64_t next_ = 0;
};

}  // namespace

std::vector<TrialRates> compare(const std::vector<Placement>& placements, const Kernels& kernels, int spin_us,
                                int64_t num_bytes, double budget_s) {
    if (placements.empty()) throw std::invalid_argument("there is nothing to compare");
    const double start = seconds();
    std::vector<std::unique_ptr<ThreadPool>> pools;
    for (const Placement& one : placements) {
        pools.push_back(std::make_unique<ThreadPool>(one.threads, spin_us, one.processors));
    }
    Trial trial(kernels, num_bytes);
    trial.fill(*pools.back(), budget_s / 3);
    std::vector<TrialRates> best(pools.size());
    do {
        for (size_t i = 0; i < pools.size(); ++i) {
            trial.decode_rate(*pools[i]);  // wakes these threads; those of other pools fall asleep
            best[i].decode_bytes_per_s = std::max(best[i].decode_bytes_per_s, trial.decode_rate(*pools[i]));
            best[i].prefill_flops_per_s =
                std::max(best[i].prefill_flops_per_s, trial.prefill_rate(*pools[i]));
        }
    } while (seconds() - start < 0.9 * budget_s);
    return best;
}

}  // namespace llmd
