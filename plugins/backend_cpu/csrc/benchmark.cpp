#include "benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "bf16_layout.hpp"
#include "buffer.hpp"

namespace llmd {

namespace {

constexpr int64_t kCols = 2048;
constexpr IntegerFormat kQ8{8, 128, 64};
constexpr IntegerFormat kQ4{
    .bits = 4, .group_size = 32, .coarse_size = 256, .has_minimum = true, .in_int8 = true};
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

constexpr InputLayout kInputs{kCols, kQ8.activation_group(), kQ8.input_terms()};  // q4 has fewer groups

struct Bench {
    ThreadPool& pool;
    const Kernels& kernels;
    int64_t slices;
    Buffer weights;
    Buffer inputs;
    Buffer outputs;
    Buffer int8_values;
    Buffer int8_scales;
    Buffer int8_running;
    Buffer bf16_terms;

    Bench(ThreadPool& pool, const Kernels& kernels, int64_t slices)
        : pool(pool),
          kernels(kernels),
          slices(slices),
          weights(static_cast<size_t>(slices * kSliceBytes)),
          inputs(sizeof(float) * kPrefillRows * kCols),
          outputs(sizeof(float) *
                  static_cast<size_t>(std::max(kPrefillRows * kPrefillOutputs, 2 * kSliceBytes / kCols))),
          int8_values(static_cast<size_t>(kPrefillRows * kInputs.values())),
          int8_scales(sizeof(float) * static_cast<size_t>(kPrefillRows * kInputs.groups())),
          int8_running(sizeof(int32_t) * static_cast<size_t>(kPrefillRows * kInputs.running())),
          bf16_terms(sizeof(uint16_t) * static_cast<size_t>(TermLayout{1, kCols}.numbers())) {
        fill();
        std::fill_n(inputs.as<float>(), kPrefillRows * kCols, 0.5F);
    }

    uint8_t* slice(int64_t i) const { return weights.as<uint8_t>() + i % slices * kSliceBytes; }

    // Byte 0x2c everywhere makes small positive numbers in each format. Untouched pages would all share
    // one page of zeros.
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

    double linear(Format format, const IntegerFormat& integer, int64_t rows, int64_t weight_rows,
                  const uint8_t* data) {
        struct Job {
            const Kernels& kernels;
            LinearTarget target;
            ConvertArgs convert;
            LinearArgs args;
        } job{kernels, {{format, weight_rows, kCols, integer, data}, nullptr, outputs.as<float>()}, {}, {}};
        const ConvertedRows converted{int8_values.as<int8_t>(), int8_scales.as<float>(),
                                      int8_running.as<int32_t>(), bf16_terms.as<uint16_t>()};
        job.convert = {inputs.as<float>(), rows, kCols, input_form(kernels, job.target.weight), converted};
        job.args = {inputs.as<float>(), rows, kCols, &job.target, 1, converted};
        const auto run = [](void* context, Worker& worker) {
            const Job& job = *static_cast<Job*>(context);
            if (job.convert.form.kind != InputKind::kFloat) {
                job.kernels.convert(job.convert, worker);
                worker.barrier();
            }
            job.kernels.linear(job.args, worker);
        };
        const double start = seconds();
        pool.run(run, &job);
        return seconds() - start;
    }

    double decode(Format format, int64_t panel_bytes, const IntegerFormat& integer, const uint8_t* data) {
        const int64_t panels = kSliceBytes / panel_bytes;
        return static_cast<double>(panels * panel_bytes) /
               linear(format, integer, 1, panels * kPanelRows, data);
    }
    double decode(Format format, int64_t element_bytes, const uint8_t* data) {
        return decode(format, kPanelRows * kCols * element_bytes, {}, data);
    }
    double decode(const IntegerFormat& integer, const uint8_t* data) {
        return decode(Format::kInteger, PanelLayout{kCols, integer}.panel_bytes(), integer, data);
    }

    double prefill(const IntegerFormat& integer, const uint8_t* data) {
        const double operations = 2.0 * kPrefillRows * kCols * kPrefillOutputs;
        return operations / linear(Format::kInteger, integer, kPrefillRows, kPrefillOutputs, data);
    }
};

}  // namespace

Rates measure(ThreadPool& pool, const Kernels& kernels, double budget_s) {
    const double start = seconds();
    Bench bench(pool, kernels, budget_s < 1.0 ? 4 : 16);
    std::vector<double> read, f32, bf16, q8, q4, prefill_q8, prefill_q4;
    int64_t turn = 0;
    do {
        read.push_back(kSliceBytes / bench.read(bench.slice(turn++)));
        f32.push_back(bench.decode(Format::kF32, 4, bench.slice(turn++)));
        bf16.push_back(bench.decode(Format::kBF16, 2, bench.slice(turn++)));
        q8.push_back(bench.decode(kQ8, bench.slice(turn++)));
        q4.push_back(bench.decode(kQ4, bench.slice(turn++)));
        prefill_q8.push_back(bench.prefill(kQ8, bench.slice(turn)));
        prefill_q4.push_back(bench.prefill(kQ4, bench.slice(turn)));
    } while (seconds() - start < 0.9 * budget_s);
    return {median(read), median(f32), median(bf16),
            median(q8),   median(q4),  std::max(median(prefill_q8), median(prefill_q4))};
}

}  // namespace llmd
