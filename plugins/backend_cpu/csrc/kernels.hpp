// The kernels of an instruction set, and the plain arguments they take.
//
// Every kernel shares its work among the threads of a job through the `Worker`, and leaves barriers to its
// caller. Values are float32, row-major, rows close together.

#pragma once

#include <cstddef>
#include <cstdint>

#include "integer_layout.hpp"
#include "kv_layout.hpp"
#include "thread_pool.hpp"

namespace llmd {

constexpr int64_t kBlockLen = 16;  // tokens in a KV block

enum class Format : int32_t { kF32, kF16, kBF16, kInteger };

// A matrix [rows, cols]. Plain formats: `data` is row-major. Integers: packed panels, see ops/pack.hpp.
struct Matrix {
    Format format;
    int64_t rows;
    int64_t cols;
    IntegerFormat integer;
    const void* data;
    const void* strips = nullptr;  // the same integers by input, where that is worth its memory
};

// Scales or minimums [rows, columns] as the core hands them over.
struct GroupScales {
    const void* coarse;  // float16, or float32 where `wide`; [rows, coarse_columns]
    bool wide;
    int64_t coarse_columns;  // 1: one scale a row
    const int8_t* fine;      // [rows, fine_columns], null where scales have one level
    int64_t fine_columns;
};

// A matrix of codes as the core quantises it.
struct IntegerMatrix {
    int64_t rows;
    int64_t cols;
    IntegerFormat format;
    const uint8_t* codes;  // [rows, cols]
    GroupScales scales;
    GroupScales minimums;  // coarse null: none
    // [rows, groups, outliers], null where the format has none
    const uint8_t* outlier_columns = nullptr;
    const int8_t* outlier_residuals = nullptr;
};

struct EmbedArgs {
    const Matrix* table;
    const int32_t* ids;
    int64_t rows;
    float scale;
    float* out;
};

struct NormArgs {
    const float* x;
    float* out;
    int64_t pieces;  // rows times heads
    int64_t width;   // of a piece
    const float* weight;
    const float* bias;
    float eps;
    float offset;
    bool subtract_mean;
};

// Activations converted for the weights that multiply them. A stage allocates this once, for its widest op.
struct ConvertedRows {
    int8_t* values;  // with scales and running sums: the layout of ops/quantize.hpp
    float* scales;
    int32_t* running;
    uint16_t* bf16_terms;  // the bits of bf16 numbers: the layout of ops/split.hpp
};

// What activations are converted to before a weight multiplies them.
enum class InputKind : int32_t {
    kFloat,      // they stay float32
    kInt8,       // each is a sum of int8 numbers, with a scale for each group of inputs
    kBf16Terms,  // each is a sum of kBf16Terms bf16 numbers
};
struct InputForm {
    InputKind kind = InputKind::kFloat;
    int64_t group_size = 0;  // of kInt8: inputs that share a scale
    int64_t int8_terms = 0;  // of kInt8: int8 numbers in the sum

    bool operator==(const InputForm&) const = default;
};

// Converts [rows, cols] to a form.
struct ConvertArgs {
    const float* x;
    int64_t rows;
    int64_t cols;
    InputForm form;
    ConvertedRows out;
};

struct LinearTarget {
    Matrix weight;
    const float* bias;
    float* out;  // [rows, weight.rows]
};

struct LinearArgs {
    const float* x;
    int64_t rows;
    int64_t cols;
    const LinearTarget* targets;
    int64_t num_targets;
    ConvertedRows converted;  // of x, in the form that `input_form` names
    // [threads, 16, cols] where x is not rounded, for a panel of integers as each thread unpacks it; else
    // null
    float* unpacked = nullptr;
    // [threads, scratch_bytes] where the weight has strips: for lists of the inputs that are not zero
    uint8_t* scratch = nullptr;
    int64_t scratch_bytes = 0;
};

struct RopeArgs {
    const float* x;
    float* out;
    int64_t rows;
    int64_t heads;
    int64_t head_dim;
    int64_t half;          // pairs that turn
    const float* cosines;  // [rows, half]
    const float* sines;    // [rows, half]
    bool interleaved;
};

struct AttentionArgs {
    const float* q;
    const float* k;
    const float* v;
    float* out;
    const int32_t* positions;
    const int32_t* row_offsets;
    int64_t rows;
    int64_t sequences;
    const int32_t* block_table;  // [sequences, table_width]
    int64_t table_width;
    void* pool;  // this layer's blocks, see kv_layout.hpp
    KvDtype dtype;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t window;  // 0: none
    bool causal;     // false: a row sees every row of its sequence in the step
    float scale;
    float softcap;  // 0: none
    float* scratch;
    int64_t scratch_per_thread;  // floats, `attention_scratch`
    float* partials;             // of all threads, `attention_partials` floats; none: no sequence is split
};

// The order is that of llmd.api.encoding.ACTIVATIONS.
enum Activation : int { kSilu, kGelu, kGeluTanh, kRelu2, kRelu, kTanh };

struct GluArgs {
    const float* gate;
    const float* up;
    float* out;
    int64_t count;
    Activation activation;
    float threshold;  // of relu: what is below it becomes zero
};

struct ActivateArgs {
    const float* x;
    float* out;
    int64_t count;
    Activation activation;
};

struct AddArgs {
    const float* a;
    const float* b;
    float* out;
    int64_t count;
    float scale;
};

// The rows of a step that need output; see llmd.api.step.Selection.
struct Selection {
    int64_t rows;
    const int32_t* row_numbers;
    const int32_t* edit_offsets;
    const int32_t* edit_ids;
    const float* edit_factors;
    const float* edit_biases;
    const bool* masked;
    const float* temperatures;
    const int32_t* targets;
    int64_t raw_top;
};

// Where the results of a ticket go; see llmd.api.step.StepResult. `raw` and `edited` are [rows, vocab].
struct Outputs {
    float* hidden;
    float* raw;
    float* edited;
    int32_t* ids;
    float* edited_values;
    float* raw_values;
    float* raw_logsumexp;
    float* edited_logsumexp;
    float* edited_entropy;
    float* edited_deviation;
    int32_t* num_allowed;
    float* target_raw;
    int32_t* top_ids;
    float* top_raw;
};

struct GatherArgs {
    const float* x;  // [rows of the step, cols]
    int64_t cols;
    const int32_t* row_numbers;
    int64_t rows;
    float* out;  // [rows, cols]
};

// From x w^T of the selected rows, which lies in `outputs->raw`, to candidates.
struct CandidateArgs {
    int64_t vocab;
    const float* bias;
    float scale;
    float softcap;  // 0: none
    const Selection* selection;
    const Outputs* outputs;
    int64_t num_candidates;
};

struct MaskArgs {
    const Selection* selection;
    const Outputs* outputs;
    int64_t vocab;
    int64_t num_candidates;
    const uint32_t* masks;  // [masked rows, words]
    int64_t words;
};

struct Kernels {
    const char* isa;
    void (*embed)(const EmbedArgs&, Worker&);
    void (*norm)(const NormArgs&, Worker&);
    void (*convert)(const ConvertArgs&, Worker&);
    void (*linear)(const LinearArgs&, Worker&);
    void (*rope)(const RopeArgs&, Worker&);
    void (*write_kv)(const AttentionArgs&, Worker&);
    void (*attention)(const AttentionArgs&, Worker&);
    void (*glu)(const GluArgs&, Worker&);
    void (*activate)(const ActivateArgs&, Worker&);
    void (*add)(const AddArgs&, Worker&);
    void (*gather)(const GatherArgs&, Worker&);
    void (*candidates)(const CandidateArgs&, Worker&);
    void (*mask)(const MaskArgs&, Worker&);
    // Rows `first_row` and those that follow it, as a panel; or as panel number `panel` of a strip that came
    // zeroed.
    void (*pack_panel)(const IntegerMatrix&, int64_t first_row, uint8_t* to);
    void (*pack_strip_panel)(const IntegerMatrix&, int64_t first_row, int64_t panel, uint8_t* strip);
    // Floats of scratch that `attention` needs for each thread.
    int64_t (*attention_scratch)(int64_t head_dim);
    // Floats that all threads need together where contexts of up to `positions` are shared out.
    int64_t (*attention_partials)(int64_t head_dim, int64_t positions, int threads);
    // Reads `bytes` (a multiple of 1024) at `data` and returns a value that depends on all of them.
    uint64_t (*read)(const uint8_t* data, int64_t bytes);
    bool splits_for_bf16 = false;  // multiplies bf16 weights by activations of kBf16Terms
};

LLMD_SHARED InputForm input_form(const Kernels& kernels, const Matrix& weight) {
    if (weight.format == Format::kInteger)
        return {InputKind::kInt8, weight.integer.activation_group(), weight.integer.input_terms()};
    if (weight.format == Format::kBF16 && kernels.splits_for_bf16) return {InputKind::kBf16Terms};
    return {};
}

const Kernels& generic_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx_vnni_kernels();
const Kernels& avx512_kernels();
const Kernels& amx_kernels();
#elif defined(__aarch64__)
const Kernels& neon_kernels();
const Kernels& neon_i8mm_kernels();
#endif

}  // namespace llmd
