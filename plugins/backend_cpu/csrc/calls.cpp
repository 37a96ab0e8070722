#include "calls.hpp"

#include <algorithm>
#include <stdexcept>

#include "attention_calls.hpp"
#include "elementwise.hpp"
#include "operands.hpp"

namespace llmd {

ConvertArgs bind_convert(const float* x, const Matrix& weight, const Bindings& to) {
    const bool stays = weight.format == Format::kInteger && !to.weights.program.rounds;
    const InputForm form = stays ? InputForm{} : input_form(to.weights.kernels, weight);
    return {x, 0, weight.cols, form, to.converted};
}

float* memory_for_unpacked(const InputForm& form, const Bindings& to) {
    return form.kind == InputKind::kFloat ? to.unpacked : nullptr;
}

Activation activation_of(const Operands& of) {
    require_consistent(of.integer(0) >= 0 && of.integer(0) <= kIdentity, "the activation is unknown");
    return static_cast<Activation>(of.integer(0));
}

namespace {

EmbedArgs bind_look_up(const Operands& of, float scale) {
    const Matrix& table = of.matrix(0);
    require_consistent(table.cols == of.output_width(0), "the embedding must have the width of its output");
    return {&table, nullptr, 0, 0, table.cols, scale, of.output(0)};
}

Call bind_embed(const Operands& of, const Bindings& to) {
    require_consistent(of.matrix(0).rows >= to.weights.program.vocab_size,
                       "the embedding must have a row for each token");
    const Matrix& table = of.matrix(0);
    const int64_t first = of.integer(0);
    const int64_t width = of.output_width(0);
    require_consistent(first >= 0 && first + width <= table.cols,
                       "the embedding must have the columns of its output");
    return EmbedArgs{&table, nullptr, 0, first, width, of.number(0), of.output(0)};
}

Call bind_embed_position(const Operands& of, const Bindings& to) {
    require_consistent(of.matrix(0).rows >= to.weights.program.context_len,
                       "the position embedding must have a row for each position");
    return PositionCall{bind_look_up(of, 1.0F)};
}

Call bind_embed_token_type(const Operands& of, const Bindings& to) {
    return TokenTypeCall{bind_look_up(of, 1.0F), to.first_types};
}

Call bind_norm(const Operands& of) {
    const int64_t heads = of.integer(1);
    require_consistent(heads > 0 && of.input_width(0) % heads == 0,
                       "the heads of a norm must divide its input evenly");
    require_consistent(of.input_width(0) == of.output_width(0),
                       "the input and output of a norm must have the same width");
    const int64_t width = of.input_width(0) / heads;
    const int64_t weights = of.integer(2) != 0 ? heads : 1;
    return NormArgs{of.input(0),
                    of.output(0),
                    heads,
                    width,
                    of.vector(0, weights * width),
                    of.vector(1, weights * width),
                    weights,
                    of.number(0),
                    of.number(1),
                    of.integer(0) == 1};
}

// The pass of an op whose weights take activations in the same form as this weight; created if missing.
LinearPass& pass_of(LinearCall& call, const Matrix& weight, const Operands& of, const Bindings& to) {
    const ConvertArgs convert = bind_convert(of.input(0), weight, to);
    for (LinearPass& pass : call.passes) {
        if (pass.convert.form == convert.form) return pass;
    }
    LinearPass pass;
    pass.targets = std::make_unique<std::vector<LinearTarget>>();
    pass.convert = convert;
    pass.args = {of.input(0),
                 0,
                 of.input_width(0),
                 nullptr,
                 0,
                 convert.out,
                 memory_for_unpacked(convert.form, to),
                 to.linear_scratch,
                 to.linear_scratch_bytes};
    return call.passes.emplace_back(std::move(pass));
}

Call bind_linear(const Op& op, const Operands& of, const Bindings& to) {
    LinearCall call;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
        const Matrix& weight = of.matrix(2 * i);
        require_consistent(weight.cols == of.input_width(0),
                           "the weights of a linear op must have the width of its input");
        require_consistent(weight.rows == of.output_width(i),
                           "the outputs of a linear op must have one element for each row of its weights");
        LinearPass& pass = pass_of(call, weight, of, to);
        pass.targets->push_back({weight, of.vector(2 * i + 1, weight.rows), of.output(i)});
        pass.args.targets = pass.targets->data();
        pass.args.num_targets = static_cast<int64_t>(pass.targets->size());
    }
    return call;
}

Call bind_rope(const Operands& of, const Bindings& to) {
    const RopeTable& table = to.weights.program.ropes.at(static_cast<size_t>(of.integer(2)));
    const auto is_meant = [&](const RopeAngles& of_table) { return of_table.is_for(table, of.integer(4)); };
    const RopeAngles& angles = *std::find_if(to.angles.begin(), to.angles.end(), is_meant);
    const int64_t heads = of.integer(0);
    const int64_t head_dim = of.integer(1);
    require_consistent(of.input_width(0) == heads * head_dim, "the heads of a rope must add up to its input");
    require_consistent(of.output_width(0) == heads * head_dim,
                       "the input and output of a rope must have the same width");
    require_consistent(2 * angles.half() <= head_dim, "a rope table must not rotate more than a head");
    return RopeCall{&angles,
                    {of.input(0), of.output(0), 0, heads, head_dim, angles.half(), angles.cosines(),
                     angles.sines(), of.integer(3) != 0}};
}

Call bind_head(const Operands& of, const Bindings& to) {
    const Matrix& weight = of.matrix(0);
    const int64_t vocab = to.weights.program.vocab_size;
    require_consistent(weight.cols == of.input_width(0) && weight.rows == vocab,
                       "the head must have a row for each token, of the width of its input");
    const int64_t kept = to.limits.num_candidates < vocab ? to.limits.num_candidates : vocab;
    HeadCall call{};
    call.gather = {of.input(0), weight.cols, nullptr, 0, to.gathered};
    call.weight = weight;
    call.convert = bind_convert(to.gathered, weight, to);
    call.unpacked = memory_for_unpacked(call.convert.form, to);
    call.candidates = {vocab, of.vector(1, vocab), of.number(0), of.number(1), nullptr, nullptr, kept};
    return call;
}

Call bind_router(const Operands& of, const Bindings& to) {
    const Matrix& weight = of.matrix(0);
    const int64_t experts = weight.rows;
    RouterCall call{
        {of.input(0), weight.cols, to.router_products, weight, bind_convert(of.input(0), weight, to)}, {}};
    RouterArgs& args = call.args;
    args.products = to.router_products;
    args.out = of.output(0);
    args.experts = experts;
    args.top_k = of.integer(0);
    require_consistent(of.integer(1) >= 0 && of.integer(1) <= static_cast<int64_t>(Score::kSqrtSoftplus),
                       "the score of a router is unknown");
    args.score = static_cast<Score>(of.integer(1));
    args.normalized = of.integer(2) != 0;
    args.groups = of.integer(3);
    args.top_groups = of.integer(4);
    args.sum_of_two = of.integer(5) == 1;
    args.factor = of.number(0);
    args.scale = of.number(1);
    args.bias = of.vector(1, experts);
    args.correction = of.vector(2, experts);
    args.gains = of.vector(3, experts);
    if (of.num_inputs() > 1) {
        require_consistent(of.input_width(1) == args.top_k, "a row must be given all of its experts");
        args.given = of.input(1);
    }
    const bool plain = weight.format != Format::kInteger && weight.format != Format::kFloat8;
    require_consistent(plain, "a router must have plain weights");
    require_consistent(weight.cols == of.input_width(0) && experts == of.output_width(0),
                       "a router must have the widths of its input and output");
    require_consistent(args.top_k > 0 && args.top_k <= experts, "a row must use some of the experts");
    require_consistent(args.groups > 0 && args.groups <= kMostRouterGroups && experts % args.groups == 0 &&
                           args.top_groups > 0 && args.top_groups <= args.groups,
                       "groups must divide the experts evenly, and a row must use some of them");
    return call;
}

struct Execution {
    const Kernels& kernels;
    const Step& step;
    const Selection* selection;
    const Outputs* outputs;
    Crew& crew;

    void operator()(const EmbedArgs& args) const { look_up(args, step.token_ids); }
    void operator()(const PositionCall& call) const { look_up(call.args, step.positions); }
    void operator()(const TokenTypeCall& call) const {
        look_up(call.args, step.token_types != nullptr ? step.token_types : call.first_types);
    }
    void operator()(NormArgs args) const {
        args.pieces *= step.rows;
        crew.run_small(kernels.norm, args);
    }
    void operator()(const LinearCall& call) const {
        for (const LinearPass& pass : call.passes) {
            LinearArgs args = pass.args;
            args.rows = step.rows;
            multiply(pass.convert, args);
        }
    }
    void operator()(const RouterCall& call) const {
        const LinearTarget target{call.product.weight, nullptr, call.product.out};
        const ConvertArgs& convert = call.product.convert;
        multiply(convert, {call.product.x, step.rows, call.product.cols, &target, 1, convert.out});
        RouterArgs args = call.args;
        args.rows = step.rows;
        crew.run_small(kernels.router, args);
    }
    void operator()(const std::shared_ptr<ExpertsCall>& call) const { call->run(step.rows, kernels, crew); }
    void operator()(GateArgs args) const {
        args.rows = step.rows;
        crew.run_small(kernels.gate, args);
    }
    void operator()(const std::shared_ptr<StateCall>& call) const { call->run(step, kernels, crew); }
    void operator()(const TokenShiftCall& call) const { call.run(step, kernels, crew); }
    void operator()(const GeneralizedDeltaCall& call) const { call.run(step, kernels, crew); }
    void operator()(const std::shared_ptr<HeadLinearCall>& call) const {
        call->run(step.rows, kernels, crew);
    }
    void operator()(const std::shared_ptr<AdaptCall>& call) const { call->run(step, kernels, crew); }
    void operator()(JoinArgs args) const {
        args.rows = step.rows;
        crew.run_small(kernels.join, args);
    }
    void operator()(const RopeCall& call) const {
        RopeArgs args = call.args;
        args.rows = step.rows;
        crew.run_small(kernels.rope, args);
    }
    void operator()(const AttentionCall& call) const {
        AttentionArgs args = call.args;
        const int32_t* seen = call.seen->numbers();
        args.positions = seen != nullptr ? seen : step.positions;
        attend(args, step.tables[call.group]);
    }
    void operator()(const CompressCall& call) const { call.run(step, kernels, crew); }
    void operator()(MergeArgs args) const {
        args.rows = step.rows;
        crew.run_small(kernels.merge_attention, args);
    }
    void operator()(const StreamWeightsCall& call) const {
        const LinearTarget target{call.weight, nullptr, call.products};
        multiply(call.convert, {call.args.x, step.rows, call.args.width, &target, 1, call.convert.out});
        StreamWeightsArgs args = call.args;
        args.rows = step.rows;
        crew.run_small(kernels.stream_weights, args);
    }
    void operator()(const CollapseCall& call) const { mix(kernels.collapse_streams, call.args); }
    void operator()(const MixCall& call) const { mix(kernels.mix_streams, call.args); }
    void operator()(const IndexerCall& call) const { call.run(step, kernels, crew); }
    void operator()(const EncoderAttentionCall& call) const {
        AttentionArgs args = call.args;
        args.positions = call.scratch->positions();
        attend(args, call.scratch->table());
    }
    void operator()(GluArgs args) const {
        args.count *= step.rows;
        crew.run_small(kernels.glu, args);
    }
    void operator()(ActivateArgs args) const {
        args.count *= step.rows;
        crew.run_small(kernels.activate, args);
    }
    void operator()(AddArgs args) const {
        args.count *= step.rows;
        crew.run_small(kernels.add, args);
    }
    void operator()(MultiplyArgs args) const {
        args.count *= step.rows;
        crew.run_small(kernels.multiply, args);
    }
    void operator()(const HeadCall& call) const {
        if (selection->rows == 0) return;  // a prefill chunk that is not the last
        GatherArgs gather = call.gather;
        gather.row_numbers = selection->row_numbers;
        gather.rows = selection->rows;
        crew.run_small(kernels.gather, gather);
        const LinearTarget target{call.weight, nullptr, outputs->raw};
        multiply(call.convert,
                 {gather.out, gather.rows, gather.cols, &target, 1, call.convert.out, call.unpacked});
        CandidateArgs candidates = call.candidates;
        candidates.selection = selection;
        candidates.outputs = outputs;
        crew.share(kernels.candidates, candidates);
    }

    void look_up(EmbedArgs args, const int32_t* rows) const {
        args.ids = rows;
        args.rows = step.rows;
        crew.run_small(kernels.embed, args);
    }

    void attend(AttentionArgs& args, const BlockTable& table) const {
        step.place(args, table);
        if (args.k != nullptr) crew.run_small(kernels.write_kv, args);
        crew.share(kernels.attention, args);
    }

    template <class Kernel>
    void mix(const Kernel& kernel, StreamArgs args) const {
        args.rows = step.rows;
        crew.run_small(kernel, args);
    }

    void multiply(ConvertArgs convert, const LinearArgs& args) const {
        convert.rows = args.rows;
        if (convert.form.kind != InputKind::kFloat) crew.run_small(kernels.convert, convert);
        crew.share(kernels.linear, args);
    }
};

}  // namespace

Call bind(const Op& op, const Bindings& to) {
    const Operands of(op, to);
    switch (op.kind) {
        case OpKind::kEmbed:
            return bind_embed(of, to);
        case OpKind::kNorm:
            return bind_norm(of);
        case OpKind::kLinear:
            return bind_linear(op, of, to);
        case OpKind::kRope:
            return bind_rope(of, to);
        case OpKind::kAttention:
            return bind_attention(of, to);
        case OpKind::kGlu:
            return bind_glu(of);
        case OpKind::kAdd:
            return bind_add(of);
        case OpKind::kHead:
            return bind_head(of, to);
        case OpKind::kEmbedPosition:
            return bind_embed_position(of, to);
        case OpKind::kEmbedTokenType:
            return bind_embed_token_type(of, to);
        case OpKind::kEncoderAttention:
            return bind_encoder_attention(of, to);
        case OpKind::kActivate:
            return bind_activate(of);
        case OpKind::kRouter:
            return bind_router(of, to);
        case OpKind::kExperts:
            return std::make_shared<ExpertsCall>(of, to);
        case OpKind::kGate:
            return bind_gate(of);
        case OpKind::kGatedDelta:
        case OpKind::kStateSpace:
            return std::make_shared<StateCall>(op.kind, of, to);
        case OpKind::kTokenShift:
            return TokenShiftCall(of, to);
        case OpKind::kGeneralizedDelta:
            return GeneralizedDeltaCall(of, to);
        case OpKind::kHeadLinear:
            return std::make_shared<HeadLinearCall>(of, to);
        case OpKind::kJoin:
            return bind_join(of);
        case OpKind::kMultiply:
            return bind_multiply(of);
        case OpKind::kAdapt:
            return std::make_shared<AdaptCall>(of, to);
        case OpKind::kIndexer:
            return IndexerCall(of, to);
        case OpKind::kCompress:
            return CompressCall(of, to);
        case OpKind::kMergeAttention:
            return bind_merge_attention(of);
        case OpKind::kStreamWeights:
            return bind_stream_weights(of, to);
        case OpKind::kCollapseStreams:
            return bind_collapse_streams(of);
        case OpKind::kMixStreams:
            return bind_mix_streams(of);
        case OpKind::kRecurrence:
            break;
    }
    throw std::invalid_argument("unknown op");
}

void execute(const Call& call, const Kernels& kernels, const Step& step, const Selection* selection,
             const Outputs* outputs, Crew& crew) {
    std::visit(Execution{kernels, step, selection, outputs, crew}, call);
}

}  // namespace llmd
