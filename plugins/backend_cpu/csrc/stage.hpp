// Runs steps: the weights of a program with KV pools and step buffers.

#pragma once

#include <vector>

#include "calls.hpp"

namespace llmd {

class Stage {
  public:
    // `blocks` has one number per KV group.
    Stage(const Weights& weights, std::vector<int64_t> blocks, const StageLimits& limits);
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    // Adds a ticket; tickets are numbered from 0. The caller owns the memory for its results.
    void add_ticket(const Outputs& outputs) { tickets_.push_back({outputs, {}}); }

    // Runs a whole step and writes its results to the ticket. `feed` is the ticket that negative token ids
    // refer to, or -1. `hidden` [rows, hidden_size] is null if the program begins with the embedding.
    // `selection` is null if the program does not end with the head; it must live until the ticket's masks
    // are applied. Throws std::invalid_argument before it changes anything.
    void submit(size_t ticket, Step step, int64_t feed, const float* hidden, const Selection* selection,
                int64_t edits);

    // Finishes the masked rows of a ticket: `masks` is [masked rows, words].
    void apply_masks(size_t ticket, const uint32_t* masks, int64_t words);

    // The blocks of keys and values, for use between steps.
    KvPools& pools() { return pools_; }

  private:
    struct Ticket {
        Outputs outputs;
        Selection selection;
    };

    // Returns zeroed memory for `count` elements, which lives as long as the stage.
    template <class T>
    T* allocate(int64_t count);
    void make_buffers();
    void make_angles();
    void resolve_feed(Step& step, int64_t feed);
    void run_layers(const Step& step, const Ticket& ticket);
    void run_calls(const Step& step, const Ticket& ticket, size_t first, size_t last);
    void run_calls(const Step& step, const Ticket& ticket, size_t first, size_t last, Worker& worker);

    const Weights& weights_;
    StageLimits limits_;
    KvPools pools_;
    EncoderScratch encoder_;
    ExpertRows expert_rows_{};
    int64_t num_token_types_;
    int64_t num_adapters_;
    std::vector<Ticket> tickets_;
    std::vector<Buffer> memory_;
    std::vector<float*> slots_;
    std::vector<RopeAngles> angles_;
    std::vector<SeenVectors> seen_;
    int32_t* token_ids_ = nullptr;
    std::vector<Call> calls_;
};

}  // namespace llmd
