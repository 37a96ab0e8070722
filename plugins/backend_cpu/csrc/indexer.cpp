#include "indexer.hpp"

#include <algorithm>

#include "operands.hpp"

namespace llmd {

IndexerSizes indexer_sizes(const Weights& weights, const std::vector<int64_t>& blocks) {
    IndexerSizes most;
    for (const Op& op : weights.program.ops) {
        if (op.kind != OpKind::kIndexer) continue;
        const auto group = static_cast<size_t>(op.ints.at(0));
        const int64_t held = blocks.at(group) * weights.program.groups.at(group).block_vectors();
        most.scratch = std::max(most.scratch, weights.kernels.indexer_scratch(op.ints.at(2), op.ints.at(3)));
        most.positions = std::max(most.positions, std::min(weights.program.context_len, held));
    }
    return most;
}

IndexerCall::IndexerCall(const Operands& of, const Bindings& to)
    : group_(static_cast<size_t>(of.integer(0))) {
    const KvGroup& group = to.weights.program.groups.at(group_);
    AttentionArgs& keys = args_.keys;
    keys.heads = of.integer(2);
    keys.kv_heads = 1;
    keys.head_dim = keys.value_dim = of.integer(3);
    keys.latent = true;
    keys.causal = true;
    keys.stride = group.stride;
    keys.vectors = group.block_vectors();
    seen_ = &to.seen.at(group_);
    args_.top_k = of.integer(4);
    require_consistent(group.is_latent() && group.kv_heads == 1 && group.head_dim == keys.head_dim &&
                           group.window == 0 && of.integer(5) == group.stride,
                       "an indexer must have a KV group of index keys");
    require_consistent(of.integer(1) >= 0 && of.integer(1) < group.layers,
                       "the layer of an indexer must be in its KV group");
    require_consistent(to.limits.kv_dtype <= KvDtype::kBF16, "index keys must be kept as floats");
    require_consistent(keys.heads > 0 && of.input_width(0) == keys.heads * keys.head_dim &&
                           of.input_width(1) == keys.head_dim && of.input_width(2) == keys.heads &&
                           args_.top_k > 0 && of.output_width(0) == args_.top_k,
                       "the index heads must add up to the inputs of an indexer");
    keys.q = of.input(0);
    keys.k = keys.v = of.input(1);
    keys.pool = to.pools.layer(of.integer(0), of.integer(1));
    keys.dtype = to.limits.kv_dtype;
    keys.scratch = to.indexer.scratch;
    keys.scratch_per_thread = to.indexer.sizes.scratch;
    args_.head_weights = of.input(2);
    args_.out = of.output(0);
    args_.scores = to.indexer.scores;
    args_.most_positions = to.indexer.sizes.positions;
}

void IndexerCall::run(const Step& step, const Kernels& kernels, Crew& crew) const {
    IndexerArgs args = args_;
    const int32_t* seen = seen_->numbers();
    args.keys.positions = seen != nullptr ? seen : step.positions;
    step.place(args.keys, step.tables[group_]);
    crew.run_small(kernels.write_kv, args.keys);
    crew.share(kernels.indexer, args);
}

}  // namespace llmd
