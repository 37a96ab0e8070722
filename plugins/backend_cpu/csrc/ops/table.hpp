// The ops of a unit. Each csrc/arch/<isa>.cpp defines LLMD_ISA, includes its vector type and then this.

#pragma once

#include "kernels.hpp"
#include "simd/functions.hpp"
// Ops in dependency order.
#include "ops/activate.hpp"
#include "ops/adapt.hpp"
#include "ops/add.hpp"
#include "ops/attention.hpp"
#include "ops/compress.hpp"
#include "ops/embed.hpp"
#include "ops/experts.hpp"
#include "ops/gate.hpp"
#include "ops/gated_delta.hpp"
#include "ops/generalized_delta.hpp"
#include "ops/glu.hpp"
#include "ops/head.hpp"
#include "ops/indexer.hpp"
#include "ops/join.hpp"
#include "ops/linear.hpp"
#include "ops/merge_attention.hpp"
#include "ops/multiply.hpp"
#include "ops/norm.hpp"
#include "ops/pack.hpp"
#include "ops/read.hpp"
#include "ops/rope.hpp"
#include "ops/router.hpp"
#include "ops/state_space.hpp"
#include "ops/streams.hpp"
#include "ops/token_shift.hpp"
#include "ops/write_kv.hpp"

namespace llmd::LLMD_ISA {

constexpr Kernels table(const char* isa) {
    return {isa,
            embed,
            norm,
            quantize,
            linear,
            quantize_batch,
            linear_batch,
            rope,
            write_kv,
            attention,
            indexer,
            keep_parts,
            compress,
            merge_attention,
            stream_weights,
            collapse_streams,
            mix_streams,
            glu,
            activate,
            add,
            multiply,
            gate,
            router,
            expert_gate,
            weighted_sum,
            delta_rows,
            delta_states,
            space_rows,
            space_states,
            wkv_rows,
            wkv_states,
            token_shift,
            join,
            adapt_middle,
            adapt_outputs,
            gather,
            candidates,
            mask,
            pack_panel,
            pack_strip_panel,
            attention_scratch,
            indexer_scratch,
            attention_partials,
            read};
}

}  // namespace llmd::LLMD_ISA
