#include "attention_calls.hpp"

namespace llmd {

Call bind_attention(const Operands& of, const Bindings& to) {
    AttentionCall call{};
    AttentionArgs& args = call.args;
    call.group = static_cast<size_t>(of.integer(0));
    const KvGroup& group = to.weights.program.groups.at(call.group);
    args.heads = of.integer(2);
    args.kv_heads = of.integer(3);
    args.head_dim = of.integer(4);
    args.window = of.integer(5);
    args.causal = true;
    require_consistent(
        args.kv_heads == group.kv_heads && args.head_dim == group.head_dim && args.window == group.window,
        "an attention op must have the shape of its KV group");
    require_consistent(of.integer(1) >= 0 && of.integer(1) < group.layers,
                       "the layer of an attention op must be in its KV group");
    require_consistent(args.kv_heads > 0 && args.heads % args.kv_heads == 0,
                       "the number of query heads must be a multiple of the number of KV heads");
    args.value_dim = group.value_dim();
    args.latent = group.is_latent();
    args.stride = group.stride;
    args.vectors = group.block_vectors();
    call.seen = &to.seen.at(call.group);
    require_consistent(of.integer(7) == args.stride && (args.latent || args.stride == 1),
                       "an attention op must have the stride of its KV group, which keeps latent vectors");
    require_consistent(args.value_dim <= args.head_dim, "a latent value must be part of its key");
    require_consistent(!args.latent || to.limits.kv_dtype <= KvDtype::kBF16,
                       "latent vectors must be kept as floats");
    require_consistent(
        of.input_width(0) == args.heads * args.head_dim && of.output_width(0) == args.heads * args.value_dim,
        "the query heads of an attention op must add up to its input and output");
    args.q = of.input(0);
    const bool chosen = of.integer(6) != 0;
    if (of.num_inputs() > (chosen ? 2 : 1)) {
        require_consistent(
            of.input_width(1) == args.kv_heads * args.head_dim && of.input_width(2) == of.input_width(1),
            "the KV heads of an attention op must add up to its keys and values");
        args.k = of.input(1);
        args.v = of.input(2);
    }
    if (chosen) {
        require_consistent(args.latent && args.window == 0 && of.num_inputs() % 2 == 0,
                           "positions can be chosen only among latent vectors, and without a window");
        args.chosen = of.input(of.num_inputs() - 1);
        args.top_k = of.input_width(of.num_inputs() - 1);
    }
    args.out = of.output(0);
    if (of.num_outputs() > 1) {
        require_consistent(of.output_width(1) == args.heads, "attention must have a sum for each head");
        args.sums = of.output(1);
    }
    args.pool = to.pools.layer(of.integer(0), of.integer(1));
    args.dtype = to.limits.kv_dtype;
    args.scale = of.number(0);
    args.softcap = of.number(1);
    args.sinks = of.vector(0, args.heads);
    args.scratch = to.attention_scratch;
    args.scratch_per_thread = to.weights.kernels.attention_scratch(args.head_dim);
    args.partials = to.attention_partials;
    return call;
}

Call bind_encoder_attention(const Operands& of, const Bindings& to) {
    EncoderAttentionCall call{};
    AttentionArgs& args = call.args;
    call.scratch = &to.encoder;
    args.heads = args.kv_heads = of.integer(0);
    args.head_dim = args.value_dim = of.integer(1);
    const int64_t width = args.heads * args.head_dim;
    require_consistent(width > 0 && of.input_width(0) == width && of.input_width(1) == width &&
                           of.input_width(2) == width && of.output_width(0) == width,
                       "the heads of an attention op must add up to its queries, keys, values and output");
    args.q = of.input(0);
    args.k = of.input(1);
    args.v = of.input(2);
    args.out = of.output(0);
    args.pool = to.encoder.blocks();
    args.stride = 1;
    args.vectors = kBlockLen;
    args.scale = of.number(0);
    args.scratch = to.attention_scratch;
    args.scratch_per_thread = to.weights.kernels.attention_scratch(args.head_dim);
    return call;
}

}  // namespace llmd
