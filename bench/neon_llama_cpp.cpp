// Calls one of llama.cpp's kernels for repacked weights TIMES times. Arguments: NAME ROWS TIMES. For
// bench.neon_instructions.

#include <cstdlib>
#include <map>
#include <string>

using Kernel = void(int inputs, float* out, size_t stride, const void* weights, const void* x, int rows,
                    int outputs);

extern "C" {
Kernel ggml_gemv_q4_0_4x4_q8_0, ggml_gemm_q4_0_4x4_q8_0, ggml_gemm_q4_0_4x8_q8_0;
Kernel ggml_gemv_q8_0_4x4_q8_0, ggml_gemm_q8_0_4x4_q8_0, ggml_gemm_q8_0_4x8_q8_0;
Kernel ggml_gemv_q4_K_8x4_q8_K, ggml_gemm_q4_K_8x4_q8_K, ggml_gemm_q4_K_8x8_q8_K;
Kernel ggml_gemv_q6_K_8x4_q8_K, ggml_gemm_q6_K_8x4_q8_K, ggml_gemm_q6_K_8x8_q8_K;
}

namespace {

constexpr int kInputs = 2048;
constexpr int kOutputs = 32;
char weights[1 << 20], x[1 << 20];
float out[64 * kOutputs];

#define NAMED(name) {#name, name}
const std::map<std::string, Kernel*> kKernels = {
    NAMED(ggml_gemv_q4_0_4x4_q8_0), NAMED(ggml_gemm_q4_0_4x4_q8_0), NAMED(ggml_gemm_q4_0_4x8_q8_0),
    NAMED(ggml_gemv_q8_0_4x4_q8_0), NAMED(ggml_gemm_q8_0_4x4_q8_0), NAMED(ggml_gemm_q8_0_4x8_q8_0),
    NAMED(ggml_gemv_q4_K_8x4_q8_K), NAMED(ggml_gemm_q4_K_8x4_q8_K), NAMED(ggml_gemm_q4_K_8x8_q8_K),
    NAMED(ggml_gemv_q6_K_8x4_q8_K), NAMED(ggml_gemm_q6_K_8x4_q8_K), NAMED(ggml_gemm_q6_K_8x8_q8_K),
};

}  // namespace

int main(int, char** argv) {
    Kernel* kernel = kKernels.at(argv[1]);
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
        kernel(kInputs, out, kOutputs, weights, x, std::atoi(argv[2]), kOutputs);
    }
}
