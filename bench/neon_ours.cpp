// Multiplies ROWS rows with weights of a format TIMES times. Arguments: FORMAT ROWS TIMES. For
// bench.neon_instructions.

#include <cstdlib>
#include <map>
#include <string>

#include "buffer.hpp"
#include "kernels.hpp"

using namespace llmd;

namespace {

constexpr int64_t kInputs = 2048;
constexpr int64_t kOutputs = 32;
constexpr int64_t kMostRows = 64;

const std::map<std::string, IntegerFormat> kFormats = {
    {"q4", {.bits = 4, .group_size = 32, .coarse_size = 256, .has_minimum = true, .in_int8 = true}},
    {"q4_0", {.bits = 4, .zero = 8, .group_size = 32}},
    {"q8_0", {.bits = 8, .zero = 128, .group_size = 32}},
    {"q4_k", {.bits = 4, .group_size = 32, .coarse_size = 256, .has_minimum = true}},
    {"q6_k", {.bits = 6, .zero = 32, .group_size = 16, .coarse_size = 256}},
};

struct Job {
    const Kernels& kernels;
    ConvertArgs convert;
    LinearArgs linear;
    int times;
};

}  // namespace

int main(int, char** argv) {
    const IntegerFormat& format = kFormats.at(argv[1]);
    const int64_t rows = std::atoi(argv[2]);
    const Buffer weights(
        static_cast<size_t>(PanelLayout{kInputs, format}.panel_bytes() * kOutputs / kPanelRows));
    const Buffer x(sizeof(float) * kMostRows * kInputs), out(sizeof(float) * kMostRows * kOutputs);
    const InputLayout layout{kInputs, format.activation_group(), format.input_terms()};
    const Buffer values(static_cast<size_t>(kMostRows * layout.values()));
    const Buffer scales(sizeof(float) * static_cast<size_t>(kMostRows * layout.groups()));
    const Buffer running(sizeof(int32_t) * static_cast<size_t>(kMostRows * layout.running()));
    const ConvertedRows converted{values.as<int8_t>(), scales.as<float>(), running.as<int32_t>(), nullptr};
    const LinearTarget target{
        {Format::kInteger, kOutputs, kInputs, format, weights.as<uint8_t>()}, nullptr, out.as<float>()};
    const InputForm form{InputKind::kInt8, layout.group_size, layout.terms};
    Job job{LLMD_UNIT(),
            {x.as<float>(), rows, kInputs, form, converted},
            {x.as<float>(), rows, kInputs, &target, 1, converted},
            std::atoi(argv[3])};
    ThreadPool(1, 0).run(
        [](void* context, Worker& worker) {
            const Job& job = *static_cast<Job*>(context);
            job.kernels.convert(job.convert, worker);
            for (int i = 0; i < job.times; ++i) {
                worker.barrier();
                job.kernels.linear(job.linear, worker);
            }
        },
        &job);
}
