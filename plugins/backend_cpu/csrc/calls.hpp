// Ops of a program, bound to the buffers of a stage and ready to run.

#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "adapters.hpp"
#include "compressed_calls.hpp"
#include "crew.hpp"
#include "encoder_scratch.hpp"
#include "experts.hpp"
#include "head_linear.hpp"
#include "indexer.hpp"
#include "kernels.hpp"
#include "kv_pools.hpp"
#include "rope_angles.hpp"
#include "seen_vectors.hpp"
#include "state_call.hpp"
#include "step.hpp"
#include "time_mix_calls.hpp"
#include "weights.hpp"

namespace llmd {

// The weights of an op that take their input in the same form. `args` points to `targets`.
struct LinearPass {
    std::unique_ptr<std::vector<LinearTarget>> targets;
    ConvertArgs convert;
    LinearArgs args;
};

struct LinearCall {
    std::vector<LinearPass> passes;
};

// Rope and attention ops; `args` lacks the fields that change with every step.
struct RopeCall {
    const RopeAngles* angles;
    RopeArgs args;
};
struct AttentionCall {
    size_t group;
    const SeenVectors* seen;
    AttentionArgs args;
};
struct EncoderAttentionCall {
    const EncoderScratch* scratch;
    AttentionArgs args;
};

// Embedding lookups by something other than the token id.
struct PositionCall {
    EmbedArgs args;
};
struct TokenTypeCall {
    EmbedArgs args;
    const int32_t* first_types;  // zeros, for steps without token types
};

// The head: a linear op over the selected rows, then their candidates.
struct HeadCall {
    GatherArgs gather;
    Matrix weight;
    ConvertArgs convert;
    float* unpacked;
    CandidateArgs candidates;
};

// A router: a product without a bias, then the weights of experts.
struct RouterCall {
    struct {
        const float* x;
        int64_t cols;
        float* out;
        Matrix weight;
        ConvertArgs convert;
    } product;
    RouterArgs args;
};

// Arguments hold everything that the stage fixes. `execute` fills in `rows`, pointers into the step and
// counts that depend on the number of rows. Counts in `NormArgs`, `GluArgs`, `AddArgs`, `ActivateArgs` and
// `MultiplyArgs` are for one row.
using Call = std::variant<EmbedArgs, NormArgs, LinearCall, RopeCall, AttentionCall, GluArgs, AddArgs,
                          HeadCall, PositionCall, TokenTypeCall, EncoderAttentionCall, ActivateArgs,
                          RouterCall, std::shared_ptr<ExpertsCall>, GateArgs, std::shared_ptr<StateCall>,
                          std::shared_ptr<HeadLinearCall>, JoinArgs, MultiplyArgs, TokenShiftCall,
                          GeneralizedDeltaCall, std::shared_ptr<AdaptCall>, IndexerCall, CompressCall,
                          MergeArgs, StreamWeightsCall, CollapseCall, MixCall>;

// The buffers that calls are bound to. Slots are [max_rows, width].
struct Bindings {
    const Weights& weights;
    const std::vector<float*>& slots;
    const KvPools& pools;
    const std::vector<RopeAngles>& angles;
    const std::vector<SeenVectors>& seen;  // for each KV group
    const EncoderScratch& encoder;
    const int32_t* first_types;  // [max_rows] zeros: the types of a step without token types
    ConvertedRows converted;
    float* unpacked;          // [threads, 16, columns of the widest]; see `memory_for_unpacked`
    uint8_t* linear_scratch;  // [threads, linear_scratch_bytes]
    int64_t linear_scratch_bytes;
    float* attention_scratch;
    float* attention_partials;
    float* gathered;
    float* router_products;  // [max_rows, experts]
    float* stream_products;  // [max_rows, weights of streams]
    const ExpertRows& expert_rows;
    StateRows state_rows;
    HeadRows head_rows;
    float* adapter_middle;
    IndexerBuffers indexer;
    const StageLimits& limits;
};

// Throws std::invalid_argument if the slots, weights and sizes of an op contradict each other.
Call bind(const Op& op, const Bindings& to);

// Runs a call on all threads of a job. `selection` and `outputs` belong to the ticket of the step.
void execute(const Call& call, const Kernels& kernels, const Step& step, const Selection* selection,
             const Outputs* outputs, Crew& crew);

}  // namespace llmd
