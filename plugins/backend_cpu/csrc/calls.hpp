// Ops of a program bound to the buffers of a stage, ready to run.

#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "crew.hpp"
#include "encoder_scratch.hpp"
#include "kernels.hpp"
#include "kv_pools.hpp"
#include "rope_angles.hpp"
#include "step.hpp"
#include "weights.hpp"

namespace llmd {

// Weights that meet one form of their input (no terms: as it is), with the targets that `args` points to.
struct LinearPass {
    std::unique_ptr<std::vector<LinearTarget>> targets;
    ConvertArgs convert;
    LinearArgs args;
};

struct LinearCall {
    std::vector<LinearPass> passes;
};

// Rope and attention as bound, with what changes from step to step.
struct RopeCall {
    const RopeAngles* angles;
    RopeArgs args;
};
struct AttentionCall {
    size_t group;
    AttentionArgs args;
};
struct EncoderAttentionCall {
    const EncoderScratch* scratch;
    AttentionArgs args;
};

// A look-up by something else than the token.
struct PositionCall {
    EmbedArgs args;
};
struct TokenTypeCall {
    EmbedArgs args;
    const int32_t* first_types;  // zeros, for a step that gives none
};

// The head: a linear over the selected rows, then their candidates.
struct HeadCall {
    GatherArgs gather;
    Matrix weight;
    ConvertArgs convert;
    float* unpacked;
    CandidateArgs candidates;
};

// Arguments hold everything that the stage fixes; `rows`, pointers into the step and counts that follow from
// its rows are filled in by `execute`. Counts of `NormArgs`, `GluArgs`, `AddArgs` and `ActivateArgs` are
// those of one row.
using Call = std::variant<EmbedArgs, NormArgs, LinearCall, RopeCall, AttentionCall, GluArgs, AddArgs,
                          HeadCall, PositionCall, TokenTypeCall, EncoderAttentionCall, ActivateArgs>;

// What calls are bound to. Slots are [max_rows, width].
struct Bindings {
    const Weights& weights;
    const std::vector<float*>& slots;
    const KvPools& pools;
    const std::vector<RopeAngles>& angles;
    const EncoderScratch& encoder;
    const int32_t* first_types;  // [max_rows] zeros: the types of a step that gives none
    ConvertedRows converted;
    float* unpacked;
    uint8_t* linear_scratch;  // [threads, linear_scratch_bytes]
    int64_t linear_scratch_bytes;
    float* attention_scratch;
    float* attention_partials;
    float* gathered;
    const StageLimits& limits;
};

// Throws std::invalid_argument where slots, weights and sizes of an op contradict each other.
Call bind(const Op& op, const Bindings& to);

// Runs a call on all threads of a job. `selection` and `outputs` are those of the step's ticket.
void execute(const Call& call, const Kernels& kernels, const Step& step, const Selection* selection,
             const Outputs* outputs, Crew& crew);

}  // namespace llmd
