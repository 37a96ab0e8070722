#include "benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "buffer.hpp"
#include "q8_layout.hpp"

namespace llmd {

namespace {

constexpr int64_t kCols = 2048;
constexpr int64_t kGroup = 64;
constexpr int64_t kSliceBytes = int64_t{16} << 20;
constexpr int64_t kPrefillRows = 256;
constexpr int64_t kPrefillOutputs = 2048;

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Bench {
    ThreadPool& pool;
    const Kernels& kernels;
    int64_t slices;
    Buffer weights;
    Buffer inputs;
    Buffer outputs;
    Buffer int8_values;
    Buffer int8_scales;

    Bench(ThreadPool& pool, const Kernels& kernels, int64_t slices)
        : pool(pool),
          kernels(kernels),
          slices(slices),
          weights(static_cast<size_t>(slices * kSliceBytes)),
          inputs(sizeof(float) * kPrefillRows * kCols),
          outputs(sizeof(float) *
                  static_cast<size_t>(std::max(kPrefillRows * kPrefillOutputs, kSliceBytes / kCols))),
          int8_values(kPrefillRows * kCols),
          int8_scales(2 * sizeof(float) * kPrefillRows * kCols / kGroup) {
        fill();
        std::fill_n(inputs.as<float>(), kPrefillRows * kCols, 0.5F);
    }

    uint8_t* slice(int64_t i) const { return weights.as<uint8_t>() + i % slices * kSliceBytes; }

    // Every byte 0x2c is a small positive number in each format. Untouched pages would all be one page of
    // zeros.
    void fill() {
        const auto job = [](void* context, Worker& worker) {
            const auto& bench = *static_cast<Bench*>(context);
            for (int64_t i; (i = worker.take(1)) < bench.slices;)
                std::memset(bench.slice(i), 0x2c, kSliceBytes);
        };
        pool.run(job, this);
    }

    double read(const uint8_t* data) {
        struct Job {
            const Kernels& kernels;
            const uint8_t* data;
        } job{kernels, data};
        const auto run = [](void* context, Worker& worker) {
            constexpr int64_t kPiece = int64_t{1} << 18;
            const Job& job = *static_cast<Job*>(context);
            for (int64_t at; (at = worker.take(kPiece)) < kSliceBytes;) {
                volatile uint64_t used = job.kernels.read(job.data + at, kPiece);
                static_cast<void>(used);
            }
        };
        const double start = seconds();
        pool.run(run, &job);
        return seconds() - start;
    }

    double linear(Format format, int64_t rows, int64_t weight_rows, const uint8_t* data) {
        struct Job {
            const Kernels& kernels;
            LinearTarget target;
            LinearArgs args;
        } job{kernels, {{format, weight_rows, kCols, kGroup, data}, nullptr, outputs.as<float>()}, {}};
        auto* scales = int8_scales.as<float>();
        job.args = {inputs.as<float>(),
                    rows,
                    kCols,
                    &job.target,
                    1,
                    {int8_values.as<int8_t>(), scales,
                     reinterpret_cast<int32_t*>(scales + kPrefillRows * kCols / kGroup)}};
        const auto run = [](void* context, Worker& worker) {
            const Job& job = *static_cast<Job*>(context);
            if (job.target.weight.format == Format::kQ8) {
                job.kernels.quantize({job.args.x, job.args.rows, kCols, kGroup, job.args.quantized}, worker);
                worker.barrier();
            }
            job.kernels.linear(job.args, worker);
        };
        const double start = seconds();
        pool.run(run, &job);
        return seconds() - start;
    }

    double decode(Format format, int64_t row_bytes, const uint8_t* data) {
        const int64_t rows = kSliceBytes / row_bytes / kPanelRows * kPanelRows;
        return static_cast<double>(rows * row_bytes) / linear(format, 1, rows, data);
    }

    double prefill(const uint8_t* data) {
        const double operations = 2.0 * kPrefillRows * kCols * kPrefillOutputs;
        return operations / linear(Format::kQ8, kPrefillRows, kPrefillOutputs, data);
    }
};

}  // namespace

Rates measure(ThreadPool& pool, const Kernels& kernels, double budget_s) {
    const double start = seconds();
    Bench bench(pool, kernels, budget_s < 1.0 ? 4 : 16);
    const int64_t int8_row = Q8Layout{kCols, kGroup}.panel_bytes() / kPanelRows;
    std::vector<double> read, f32, bf16, q8, prefill;
    int64_t turn = 0;
    do {
        read.push_back(kSliceBytes / bench.read(bench.slice(turn++)));
        f32.push_back(bench.decode(Format::kF32, 4 * kCols, bench.slice(turn++)));
        bf16.push_back(bench.decode(Format::kBF16, 2 * kCols, bench.slice(turn++)));
        q8.push_back(bench.decode(Format::kQ8, int8_row, bench.slice(turn++)));
        prefill.push_back(bench.prefill(bench.slice(turn)));
    } while (seconds() - start < 0.9 * budget_s);
    return {median(read), median(f32), median(bf16), median(q8), median(prefill)};
}

}  // namespace llmd
