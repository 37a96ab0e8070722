// The kernels of an instruction set, and the plain arguments they take.
//
// Every kernel shares its work among the threads of a job through the `Worker`, and leaves barriers to its
// caller. Values are float32, row-major, without padding between rows.

#pragma once

#include <cstddef>
#include <cstdint>

#include "attention_args.hpp"
#include "compressed_args.hpp"
#include "matrix.hpp"
#include "state_args.hpp"
#include "thread_pool.hpp"

namespace llmd {

// Columns [first, first + width) of the rows of a table.
struct EmbedArgs {
    const Matrix* table;
    const int32_t* ids;
    int64_t rows;
    int64_t first;
    int64_t width;
    float scale;
    float* out;
};

struct NormArgs {
    const float* x;
    float* out;
    int64_t pieces;       // rows times heads
    int64_t width;        // of a piece
    const float* weight;  // [weights, width]
    const float* bias;    // [weights, width]
    int64_t weights;      // pieces in turn have their own weights and biases; 1: all have the same
    float eps;
    float offset;
    bool subtract_mean;
};

// Activations converted for the weights that multiply them. A stage allocates them once, for its widest
// op.
struct ConvertedRows {
    int8_t* values;  // int8 numbers; with `scales` and `running`: the layout of ops/quantize.hpp
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
    const int32_t* row_numbers = nullptr;  // [rows]: which rows of x; null: the first ones

    LLMD_SHARED const float* row(int64_t r) const {
        return x + (row_numbers == nullptr ? r : row_numbers[r]) * cols;
    }
};

// Conversions to one form, of equally wide rows.
struct ConvertBatchArgs {
    const ConvertArgs* parts;
    int64_t count;
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
    // [threads, 16, cols] if x is not rounded: each thread unpacks a panel of weights into it; else null
    float* unpacked = nullptr;
    // [threads, scratch_bytes] if the weight has strips: lists of the nonzero inputs
    uint8_t* scratch = nullptr;
    int64_t scratch_bytes = 0;
};

// Products of equal shapes: each part has as many targets as the others, of the same sizes and formats.
struct LinearBatchArgs {
    const LinearArgs* parts;
    int64_t count;
};

struct RopeArgs {
    const float* x;
    float* out;
    int64_t rows;
    int64_t heads;
    int64_t head_dim;
    int64_t half;          // pairs that are rotated
    const float* cosines;  // [rows, half]
    const float* sines;    // [rows, half]
    bool interleaved;
};

// In the order of llmd.api.activations.ACTIVATIONS.
enum Activation : int { kSilu, kGelu, kGeluTanh, kRelu2, kRelu, kTanh, kQuickGelu, kSigmoid, kIdentity };

struct GluArgs {
    const float* gate;
    const float* up;
    float* out;
    int64_t count;
    Activation activation;
    float threshold;  // of relu: anything below becomes zero
    float limit;      // of the gate from above, and of up on both sides; infinity: none
};

struct ActivateArgs {
    const float* x;
    float* out;
    int64_t count;
    Activation activation;
};

// The gate of an expert: activation(min(gate, limit)) * (up within +-limit + offset)
struct ExpertGateArgs {
    const float* gate;
    const float* up;
    float* out;
    int64_t count;
    Activation activation;
    float limit;  // infinity: none
    float offset;
};

// Each row of x in `slices` equal slices, times the sigmoid of as many gates.
struct GateArgs {
    const float* x;
    const float* gate;  // [rows, slices]
    float* out;
    int64_t rows;
    int64_t width;
    int64_t slices;
};

// In the order of llmd.api.encoding.SCORES.
enum class Score : int64_t { kSoftmax, kSigmoid, kSqrtSoftplus };

// Turns the products of a router into the weights of experts; see llmd.api.expert_ops.Router.
struct RouterArgs {
    const float* products;  // [rows, experts]
    float* out;             // [rows, experts]
    int64_t rows;
    int64_t experts;
    int64_t top_k;
    Score score;
    bool normalized;
    int64_t groups;
    int64_t top_groups;
    bool sum_of_two;  // scores of groups; else the largest
    float factor;
    float scale;
    const float* bias;        // [experts], or null
    const float* correction;  // [experts], or null
    const float* gains;       // [experts], or null
    const float* given;       // [rows, top_k]: the experts of a row; null: scores decide
};

// Adds up rows: out[r] = sum of weights[r][i] * x[row_numbers[r][i]] over the first `counts[r]` i
struct WeightedSumArgs {
    const float* x;  // [.., cols]
    float* out;      // [rows, cols]
    int64_t rows;
    int64_t cols;
    const int32_t* counts;       // [rows]
    const int32_t* row_numbers;  // [rows, most]
    const float* weights;        // [rows, most]
    int64_t most;
};

struct JoinArgs {
    const float* a;  // [rows, heads, first]
    const float* b;  // [rows, heads, second]
    float* out;
    int64_t rows;
    int64_t heads, first, second;
};

// What an adapter adds to a product, for the rows of a step that have it.
struct AdapterPart {
    Matrix a;  // [rank, inputs]
    Matrix b;  // [rank, outputs]: turned
    float scale;
    const Run* runs;  // of rows of the step
    int64_t num_runs;
    float* middle;         // [rows of the step, middle_width]; a run has its rows one after the other
    int64_t middle_width;  // at least the rank
    float* out;            // [rows of the step, outputs]

    LLMD_SHARED float* middle_of(const Run& run) const { return middle + run.first * middle_width; }
};

struct AdaptArgs {
    const float* x;  // [rows of the step, cols]
    int64_t cols;
    const AdapterPart* parts;
    int64_t count;
};

struct AddArgs {
    const float* a;
    const float* b;
    float* out;
    int64_t count;
    float scale;
};

struct MultiplyArgs {
    const float* x;
    const float* factor;  // [1]
    float* out;
    int64_t count;
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

// Where the results of a ticket are written; see llmd.api.step.StepResult. `raw` and `edited` are [rows,
// vocab].
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

// Turns x w^T of the selected rows, which is in `outputs->raw`, into candidates.
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
    void (*convert_batch)(const ConvertBatchArgs&, Worker&);
    void (*linear_batch)(const LinearBatchArgs&, Worker&);
    void (*rope)(const RopeArgs&, Worker&);
    void (*write_kv)(const AttentionArgs&, Worker&);
    void (*attention)(const AttentionArgs&, Worker&);
    void (*indexer)(const IndexerArgs&, Worker&);
    void (*keep_parts)(const CompressArgs&, Worker&);
    void (*compress)(const CompressArgs&, Worker&);
    void (*merge_attention)(const MergeArgs&, Worker&);
    void (*stream_weights)(const StreamWeightsArgs&, Worker&);
    void (*collapse_streams)(const StreamArgs&, Worker&);
    void (*mix_streams)(const StreamArgs&, Worker&);
    void (*glu)(const GluArgs&, Worker&);
    void (*activate)(const ActivateArgs&, Worker&);
    void (*add)(const AddArgs&, Worker&);
    void (*multiply)(const MultiplyArgs&, Worker&);
    void (*gate)(const GateArgs&, Worker&);
    void (*router)(const RouterArgs&, Worker&);
    void (*expert_gate)(const ExpertGateArgs&, Worker&);
    void (*weighted_sum)(const WeightedSumArgs&, Worker&);
    void (*delta_rows)(const StateArgs&, Worker&);
    void (*delta_states)(const StateArgs&, Worker&);
    void (*space_rows)(const StateArgs&, Worker&);
    void (*space_states)(const StateArgs&, Worker&);
    void (*wkv_rows)(const StateArgs&, Worker&);
    void (*wkv_states)(const StateArgs&, Worker&);
    void (*token_shift)(const ShiftArgs&, Worker&);
    void (*join)(const JoinArgs&, Worker&);
    void (*adapt_middle)(const AdaptArgs&, Worker&);
    void (*adapt_outputs)(const AdaptArgs&, Worker&);
    void (*gather)(const GatherArgs&, Worker&);
    void (*candidates)(const CandidateArgs&, Worker&);
    void (*mask)(const MaskArgs&, Worker&);
    // Packs row `first_row` and the rows after it as a panel, or as panel number `panel` of a strip, which
    // must be zeroed.
    void (*pack_panel)(const IntegerMatrix&, int64_t first_row, uint8_t* to);
    void (*pack_strip_panel)(const IntegerMatrix&, int64_t first_row, int64_t panel, uint8_t* strip);
    // Floats of scratch that `attention` needs per thread.
    int64_t (*attention_scratch)(int64_t head_dim);
    // The same for `indexer`.
    int64_t (*indexer_scratch)(int64_t heads, int64_t head_dim);
    // Floats that all threads together need to split sequences of up to `positions` positions.
    int64_t (*attention_partials)(int64_t head_dim, int64_t positions, int threads);
    // Reads `bytes` (a multiple of 1024) at `data` and returns a value that depends on every byte.
    uint64_t (*read)(const uint8_t* data, int64_t bytes);
    bool splits_for_bf16 = false;  // activations are split into kBf16Terms before bf16 weights
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
