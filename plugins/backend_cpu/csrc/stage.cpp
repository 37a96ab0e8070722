#include "stage.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "bf16_layout.hpp"

namespace llmd {

namespace {

// Elements that the widest op needs of each buffer.
struct ConvertedSizes {
    int64_t values = 0;
    int64_t scales = 0;
    int64_t running = 0;
    int64_t bf16_terms = 0;
    int64_t unpacked = 0;  // per thread, of weights that are multiplied by float32
};

ConvertedSizes converted_sizes(const Weights& weights, const StageLimits& limits) {
    ConvertedSizes most;
    for (const Op& op : weights.program.ops) {
        const bool experts = op.kind == OpKind::kExperts;
        const bool router = op.kind == OpKind::kRouter || op.kind == OpKind::kStreamWeights;
        const bool by_head = op.kind == OpKind::kHeadLinear;
        if (op.kind != OpKind::kLinear && op.kind != OpKind::kHead && !experts && !router && !by_head)
            continue;
        const int64_t each = op.kind == OpKind::kHead ? limits.max_outputs : limits.max_rows;
        const int64_t heads = by_head ? weights.members(op.weights.at(0)) : 1;
        const int64_t rows = experts ? each * op.ints.at(1) : each * heads;
        for (size_t i = 0; i < (router ? 1 : op.weights.size()); i += 2) {
            if (op.weights[i] < 0) continue;
            const Matrix& weight = weights.matrix(op.weights[i]);
            if (input_form(weights.kernels, weight).kind == InputKind::kBf16Terms) {
                // Each expert begins a tile; those that fill more than one have less than a tile unused.
                const int64_t padded = experts ? 2 * rows + kInputRows : each;
                most.bf16_terms =
                    std::max(most.bf16_terms, heads * TermLayout{padded, weight.cols}.numbers());
            }
            const bool integers = weight.format == Format::kInteger;
            if (weight.format == Format::kFloat8 || (integers && !weights.program.rounds)) {
                most.unpacked = std::max(most.unpacked, kPanelRows * weight.cols);
                continue;
            }
            if (!integers) continue;
            const InputLayout layout{weight.cols, weight.integer.activation_group(),
                                     weight.integer.input_terms()};
            // Outliers are gathered from all lines of a group, and the last group of a row may have fewer
            // lines.
            most.values = std::max(most.values, rows * layout.values() + kInputRows * kMostGroupInputs);
            most.scales = std::max(most.scales, rows * layout.groups());
            most.running = std::max(most.running, rows * layout.running());
        }
    }
    return most;
}

// The rows of the token type embedding; 1 if the program has none.
int64_t num_token_types(const Weights& weights) {
    for (const Op& op : weights.program.ops) {
        if (op.kind == OpKind::kEmbedTokenType) return weights.matrix(op.weights.at(0)).rows;
    }
    return 1;
}

// Bytes per thread for lists of nonzero inputs.
int64_t linear_scratch_bytes(const Weights& weights) {
    int64_t most = 0;
    for (const Op& op : weights.program.ops) {
        if (op.kind != OpKind::kLinear) continue;
        const Matrix& weight = weights.matrix(op.weights.at(0));
        if (weight.strips == nullptr) continue;
        most = std::max(most, kSkippingRows * StripLayout{{weight.cols, weight.integer}}.list_bytes());
    }
    return most;
}

int64_t attention_scratch(const Weights& weights) {
    int64_t most = 0;
    for (const Op& op : weights.program.ops) {
        const bool encodes = op.kind == OpKind::kEncoderAttention;
        if (!encodes && op.kind != OpKind::kAttention) continue;
        most = std::max(most, weights.kernels.attention_scratch(op.ints.at(encodes ? 1 : 4)));
    }
    return most;
}

// Floats for the partial results of a sequence that fills its context, or all blocks.
int64_t attention_partials(const Weights& weights, const std::vector<int64_t>& blocks) {
    int64_t most = 0;
    for (const Op& op : weights.program.ops) {
        if (op.kind != OpKind::kAttention) continue;
        const auto group = static_cast<size_t>(op.ints.at(0));
        const int64_t held = blocks.at(group) * weights.program.groups.at(group).block_vectors();
        const int64_t positions = std::min(weights.program.context_len, held);
        const int threads = weights.pool.size();
        most = std::max(most, weights.kernels.attention_partials(op.ints.at(4), positions, threads));
    }
    return most;
}

}  // namespace

Stage::Stage(const Weights& weights, std::vector<int64_t> blocks, const StageLimits& limits)
    : weights_(weights),
      limits_(limits),
      pools_(weights.program.groups, std::move(blocks), limits.kv_dtype),
      encoder_(weights.program, limits),
      num_token_types_(num_token_types(weights)),
      num_adapters_(num_adapters(weights.program)) {
    make_buffers();
}

template <class T>
T* Stage::allocate(int64_t count) {
    memory_.emplace_back(sizeof(T) * static_cast<size_t>(count));
    return memory_.back().as<T>();
}

void Stage::make_buffers() {
    const Program& program = weights_.program;
    for (const int64_t width : program.slot_widths)
        slots_.push_back(allocate<float>(limits_.max_rows * width));
    for (const KvGroup& group : program.groups) seen_.emplace_back(group.stride, limits_.max_rows);
    make_angles();
    const ConvertedSizes sizes = converted_sizes(weights_, limits_);
    const ConvertedRows converted{allocate<int8_t>(sizes.values), allocate<float>(sizes.scales),
                                  allocate<int32_t>(sizes.running), allocate<uint16_t>(sizes.bf16_terms)};
    float* unpacked = allocate<float>(weights_.pool.size() * sizes.unpacked);
    const int64_t linear_bytes = linear_scratch_bytes(weights_);
    auto* linear = allocate<uint8_t>(weights_.pool.size() * linear_bytes);
    token_ids_ = allocate<int32_t>(limits_.max_rows);
    float* scratch = allocate<float>(weights_.pool.size() * attention_scratch(weights_));
    float* partials = allocate<float>(attention_partials(weights_, pools_.blocks()));
    float* gathered = allocate<float>(limits_.max_outputs * program.hidden_size);
    const auto* first_types = allocate<int32_t>(limits_.max_rows);
    const ExpertSizes experts = expert_sizes(weights_, limits_);
    float* products = allocate<float>(experts.products);
    float* of_streams = allocate<float>(limits_.max_rows * stream_products(program));
    expert_rows_ = {allocate<float>(experts.hidden), allocate<float>(experts.inner),
                    allocate<float>(experts.inner),  allocate<float>(experts.hidden),
                    allocate<int32_t>(experts.rows), allocate<int32_t>(limits_.max_rows),
                    allocate<int32_t>(experts.rows), allocate<float>(experts.rows)};
    const StateSizes states = state_sizes(program, limits_);
    const StateRows state_rows{allocate<float>(states.mixed), allocate<float>(states.decays),
                               allocate<float>(states.shares)};
    const HeadSizes heads = head_sizes(weights_, limits_);
    const HeadRows head_rows{allocate<float>(heads.inputs), allocate<float>(heads.outputs),
                             allocate<int32_t>(heads.slices), allocate<int32_t>(heads.slices)};
    float* middle = allocate<float>(adapter_middle(weights_, limits_));
    const IndexerSizes indexer = indexer_sizes(weights_, pools_.blocks());
    const int64_t threads = weights_.pool.size();
    const IndexerBuffers index_buffers{allocate<float>(threads * indexer.scratch),
                                       allocate<float>(threads * indexer.positions), indexer};
    const Bindings bindings{weights_,    slots_,    pools_,        angles_,    seen_,        encoder_,
                            first_types, converted, unpacked,      linear,     linear_bytes, scratch,
                            partials,    gathered,  products,      of_streams, expert_rows_, state_rows,
                            head_rows,   middle,    index_buffers, limits_};
    for (const Op& op : program.ops) calls_.push_back(bind(op, bindings));
}

// The angles of each table and stride that an op needs.
void Stage::make_angles() {
    for (const Op& op : weights_.program.ops) {
        if (op.kind != OpKind::kRope) continue;
        const RopeTable& table = weights_.program.ropes.at(static_cast<size_t>(op.ints.at(2)));
        const int64_t stride = op.ints.at(4);
        const auto is_made = [&](const RopeAngles& angles) { return angles.is_for(table, stride); };
        if (stride < 1) throw std::invalid_argument("the stride of a rope must be positive");
        if (std::none_of(angles_.begin(), angles_.end(), is_made))
            angles_.emplace_back(table, stride, limits_.max_rows);
    }
}

void Stage::submit(size_t ticket, Step step, int64_t feed, const float* hidden, const Selection* selection,
                   int64_t edits) {
    const Program& program = weights_.program;
    check_rows(step, limits_, program.context_len);
    check_blocks(step, program, pools_.blocks());
    check_adapters(step, num_adapters_);
    if (program.hidden_in < 0) {
        resolve_feed(step, feed);
        check_tokens(step, program.vocab_size);
        check_token_types(step, num_token_types_);
    }
    if (selection != nullptr) check_selection(*selection, edits, step, limits_, program.vocab_size);

    Ticket& target = tickets_.at(ticket);
    target.selection = selection != nullptr ? *selection : Selection{};
    for (int64_t i = 0; i < 3 * step.num_copies; i += 3) {
        pools_.copy(step.copies[i], step.copies[i + 1], step.copies[i + 2]);
    }
    const auto hidden_bytes = sizeof(float) * static_cast<size_t>(step.rows * program.hidden_size);
    if (hidden != nullptr)
        std::memcpy(slots_.at(static_cast<size_t>(program.hidden_in)), hidden, hidden_bytes);
    encoder_.arrange(step);
    run_layers(step, target);
    if (program.hidden_out >= 0) {
        const auto slot = static_cast<size_t>(program.hidden_out);
        std::memcpy(target.outputs.hidden, slots_[slot],
                    sizeof(float) * static_cast<size_t>(step.rows * program.slot_widths[slot]));
    }
}

void Stage::resolve_feed(Step& step, int64_t feed) {
    const int64_t candidates = std::min(limits_.num_candidates, weights_.program.vocab_size);
    for (int64_t r = 0; r < step.rows; ++r) {
        int32_t id = step.token_ids[r];
        if (id < 0) {
            const int64_t row = -1 - static_cast<int64_t>(id);
            if (feed < 0 || row >= tickets_.at(static_cast<size_t>(feed)).selection.rows) {
                throw std::invalid_argument("token_ids refer to output row " + std::to_string(row) +
                                            ", which the ticket to feed from does not have");
            }
            id = tickets_[static_cast<size_t>(feed)].outputs.ids[row * candidates];
        }
        token_ids_[r] = id;
    }
    step.token_ids = token_ids_;
}

// Runs all calls in one job, or in several if experts have to be read between them.
void Stage::run_layers(const Step& step, const Ticket& ticket) {
    size_t first = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
        const auto* experts = std::get_if<std::shared_ptr<ExpertsCall>>(&calls_[i]);
        if (experts == nullptr || !(*experts)->is_cached()) continue;
        run_calls(step, ticket, first, i);
        (*experts)->run_cached(step.rows, weights_.kernels, weights_.pool);
        first = i + 1;
    }
    run_calls(step, ticket, first, calls_.size());
}

void Stage::run_calls(const Step& step, const Ticket& ticket, size_t first, size_t last) {
    if (first == last && first > 0) return;
    struct Job {
        Stage& stage;
        const Step& step;
        const Ticket& ticket;
        size_t first;
        size_t last;
    } job{*this, step, ticket, first, last};
    const auto run = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        job.stage.run_calls(job.step, job.ticket, job.first, job.last, worker);
    };
    weights_.pool.run(run, &job);
}

void Stage::run_calls(const Step& step, const Ticket& ticket, size_t first, size_t last, Worker& worker) {
    Crew crew(worker, weights_.pool.solo(), step.rows);
    if (first == 0) {
        for (SeenVectors& seen : seen_) {
            if (seen.numbers() == nullptr) continue;
            const auto count = [&](const Step& of, Worker& by) { seen.compute(of.positions, of.rows, by); };
            crew.run_small(count, step);
        }
        for (RopeAngles& angles : angles_) {
            const auto turn = [&](const Step& of, Worker& by) { angles.compute(of.positions, of.rows, by); };
            crew.run_small(turn, step);
        }
    }
    for (size_t i = first; i < last; ++i) {
        execute(calls_[i], weights_.kernels, step, &ticket.selection, &ticket.outputs, crew);
    }
}

void Stage::apply_masks(size_t ticket, const uint32_t* masks, int64_t words) {
    struct Job {
        const Kernels& kernels;
        MaskArgs args;
    };
    Ticket& target = tickets_.at(ticket);
    const int64_t vocab = weights_.program.vocab_size;
    Job job{
        weights_.kernels,
        {&target.selection, &target.outputs, vocab, std::min(limits_.num_candidates, vocab), masks, words}};
    const auto run = [](void* context, Worker& worker) {
        const Job& job = *static_cast<Job*>(context);
        job.kernels.mask(job.args, worker);
    };
    weights_.pool.run(run, &job);
}

}  // namespace llmd
