#include "compressed_calls.hpp"

#include <algorithm>

#include "calls.hpp"
#include "operands.hpp"

namespace llmd {

CompressCall::CompressCall(const Operands& of, const Bindings& to)
    : group_(static_cast<size_t>(of.integer(0))) {
    const KvGroup& group = to.weights.program.groups.at(group_);
    const bool overlaps = of.integer(4) != 0;
    args_.dim = of.integer(2);
    args_.stride = of.integer(3);
    args_.width = args_.dim * (overlaps ? 2 : 1);
    args_.span = args_.stride * (overlaps ? 2 : 1);
    require_consistent(args_.dim > 0 && args_.stride > 0 && of.input_width(0) == args_.width &&
                           of.input_width(1) == args_.width && of.output_width(0) == args_.dim,
                       "the elements of compressed tokens must add up to the inputs");
    require_consistent(group.is_latent() && group.kv_heads == 1 && group.head_dim == 2 * args_.width &&
                           group.stride == 1 && group.window >= args_.span,
                       "compressed tokens must have a KV group with a window of all that a row reads");
    require_consistent(of.integer(1) >= 0 && of.integer(1) < group.layers,
                       "the layer of compressed tokens must be in its KV group");
    require_consistent(to.limits.kv_dtype <= KvDtype::kBF16, "compressed tokens must be kept as floats");
    AttentionArgs& kept = args_.kept;
    kept.kv_heads = 1;
    kept.head_dim = kept.value_dim = group.head_dim;
    kept.latent = true;
    kept.stride = 1;
    kept.vectors = group.block_vectors();
    kept.pool = to.pools.layer(of.integer(0), of.integer(1));
    kept.dtype = to.limits.kv_dtype;
    args_.x = of.input(0);
    args_.gate = of.input(1);
    args_.bias = of.vector(0, args_.stride * args_.width);
    require_consistent(args_.bias != nullptr, "compressed tokens must have a bias");
    args_.out = of.output(0);
}

void CompressCall::run(const Step& step, const Kernels& kernels, Crew& crew) const {
    CompressArgs args = args_;
    step.place(args.kept, step.tables[group_]);
    crew.run_small(kernels.keep_parts, args);
    crew.run_small(kernels.compress, args);
}

MergeArgs bind_merge_attention(const Operands& of) {
    const int64_t heads = of.integer(0);
    const int64_t width = of.output_width(0);
    require_consistent(heads > 0 && width % heads == 0 && of.input_width(0) == width &&
                           of.input_width(2) == width && of.input_width(1) == heads &&
                           of.input_width(3) == heads,
                       "merged results must have the heads of their sums");
    return {of.input(0), of.input(1), of.input(2), of.input(3), of.output(0), 0, heads, width / heads};
}

int64_t stream_products(const Program& program) {
    int64_t most = 0;
    for (const Op& op : program.ops) {
        if (op.kind != OpKind::kStreamWeights) continue;
        most = std::max(most, program.slot_widths.at(static_cast<size_t>(op.outputs.at(0))));
    }
    return most;
}

StreamWeightsCall bind_stream_weights(const Operands& of, const Bindings& to) {
    const Matrix& weight = of.matrix(0);
    const int64_t streams = of.integer(0);
    const int64_t rounds = of.integer(1);
    const int64_t count = rounds == 0 ? streams : streams * (streams + 2);
    const bool plain = weight.format != Format::kInteger && weight.format != Format::kFloat8;
    require_consistent(plain, "the weights of streams must be made by a plain matrix");
    require_consistent(streams > 0 && rounds >= 0 && of.output_width(0) == count && weight.rows == count &&
                           weight.cols == of.input_width(0),
                       "the weights of streams must have the widths of their input and output");
    const float* bias = of.vector(1, count);
    const float* scale = of.vector(2, rounds == 0 ? 1 : 3);
    require_consistent(bias != nullptr && scale != nullptr, "the weights of streams must have all vectors");
    return {weight,
            bind_convert(of.input(0), weight, to),
            to.stream_products,
            {of.input(0), to.stream_products, of.output(0), 0, weight.cols, count, bias, scale, streams,
             rounds, of.number(0), of.number(1)}};
}

CollapseCall bind_collapse_streams(const Operands& of) {
    const int64_t streams = of.integer(0);
    const int64_t width = of.output_width(0);
    require_consistent(streams > 0 && of.input_width(0) == streams * width && of.input_width(1) >= streams,
                       "streams must add up to the input of their mixture");
    return {{of.input(0), nullptr, of.input(1), of.output(0), 0, streams, width, of.input_width(1)}};
}

MixCall bind_mix_streams(const Operands& of) {
    const int64_t streams = of.integer(0);
    const int64_t width = of.input_width(1);
    require_consistent(streams > 0 && of.input_width(0) == streams * width &&
                           of.output_width(0) == streams * width &&
                           of.input_width(2) == streams * (streams + 2),
                       "streams must add up to the input and output of their mixture");
    return {{of.input(0), of.input(1), of.input(2), of.output(0), 0, streams, width, of.input_width(2)}};
}

}  // namespace llmd
