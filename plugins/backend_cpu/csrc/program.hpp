// A program as the native code reads it. `llmd.api.encoding` describes the records.

#pragma once

#include <cstdint>
#include <vector>

#include "attention_args.hpp"

namespace llmd {

// In the order of OP_KINDS.
enum class OpKind : int64_t {
    kEmbed,
    kNorm,
    kLinear,
    kRope,
    kAttention,
    kGlu,
    kAdd,
    kHead,
    kEmbedPosition,
    kEmbedTokenType,
    kEncoderAttention,
    kActivate,
    kRecurrence,  // not computed here
    kRouter,
    kExperts,
    kGate,
    kGatedDelta,
    kStateSpace,
    kHeadLinear,
    kJoin,
    kMultiply,
    kTokenShift,
    kGeneralizedDelta,
    kAdapt,
    kIndexer,
    kCompress,
    kMergeAttention,
    kStreamWeights,
    kCollapseStreams,
    kMixStreams,
};

struct Op {
    OpKind kind;
    std::vector<int64_t> inputs;
    std::vector<int64_t> outputs;
    std::vector<int64_t> weights;  // -1: the op has no such tensor
    std::vector<int64_t> ints;
    std::vector<double> floats;
};

struct KvGroup {
    int64_t layers;  // in this program
    int64_t kv_heads;
    int64_t head_dim;
    int64_t window;           // 0: none
    int64_t state_bytes = 0;  // of a sequence in a layer; 0: the group has blocks of keys and values
    int64_t latent_dim = 0;   // first elements of a key that are its value; 0: values are apart
    int64_t stride = 1;       // tokens for each vector

    bool keeps_states() const { return state_bytes > 0; }
    bool is_latent() const { return latent_dim > 0; }
    int64_t value_dim() const { return is_latent() ? latent_dim : head_dim; }
    // Tokens whose vectors are in a block, and these vectors.
    int64_t block_tokens() const { return stride > kBlockLen ? stride : kBlockLen; }
    int64_t block_vectors() const { return block_tokens() / stride; }
};

struct RopeTable {
    std::vector<double> inv_freq;
    double factor;
};

struct Program {
    int64_t hidden_size;
    int64_t vocab_size;
    int64_t context_len;
    int64_t hidden_in;   // -1: the program begins with the embedding
    int64_t hidden_out;  // -1: the program ends with the head
    std::vector<int64_t> slot_widths;
    std::vector<KvGroup> groups;
    std::vector<RopeTable> ropes;
    std::vector<Op> ops;
    bool rounds = true;  // whether activations are rounded for integer weights
};

// Throws std::invalid_argument if the records are not a program.
std::vector<Op> parse_ops(const std::vector<int64_t>& records, const std::vector<double>& floats);

}  // namespace llmd
