"""The golden bound notices every single mistake: without this, agreement would prove little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.engine.loading import OpenDevice
from tests.golden.common_mutations import COMMON
from tests.golden.compressed_mutations import COMPRESSED
from tests.golden.engines import Architectures, engine, logits_error
from tests.golden.expected import read_expected
from tests.golden.falcon_mutations import FALCON
from tests.golden.hybrid_mutations import HYBRIDS
from tests.golden.indexer_mutations import INDEXERS
from tests.golden.kimi_mutations import KIMI
from tests.golden.latent_mutations import LATENTS
from tests.golden.mixture_mutations import MIXTURES
from tests.golden.models.catalog import tiny_model
from tests.golden.models.gemma4 import ROPES as GEMMA4_ROPES
from tests.golden.models.llama import LLAMA3_ROPE, LLAMA32_ROPE, YARN_ROPE
from tests.golden.models.tiny import TinyModel
from tests.golden.mutations import (
    Mutation,
    drop_biases,
    drop_embedding_scale,
    drop_factors,
    drop_gains,
    drop_logit_scale,
    drop_norm_offset,
    drop_qk_norms,
    drop_router_scale,
    drop_table_scale,
    drop_value_norms,
    interleave_rope,
    leave_weights,
    read_layer_0,
    scale_scores,
    shift_columns,
    swap_gate_and_up,
    swap_gates_of_experts,
)
from tests.golden.rwkv_mutations import RWKV7
from tests.golden.state_space_mutations import STATE_SPACES

BOUND = 1e-9

EVERYWHERE = [
    mutation
    for name in ("llama2-mha", "mistral-window", "qwen2-tied", "qwen3-tied", "phi4", "granite", "olmo2")
    for mutation in (
        Mutation(name, "theta 1 % off", {"rope_theta": tiny_model(name).config["rope_theta"] * 1.01}),
        Mutation(name, "eps 10 % off", {"rms_norm_eps": 1.1e-3}),
        Mutation(name, "rope interleaved", change=interleave_rope),
        Mutation(name, "gate and up swapped", change=swap_gate_and_up),
        Mutation(name, "another activation", {"hidden_act": "gelu"}),
    )
]
ROPES = [
    Mutation("llama-linear-rope", "factor", {"rope_scaling": {"type": "linear", "factor": 2.6}}),
    Mutation("llama-linear-rope", "not scaled", {"rope_scaling": None}),
    Mutation("llama-dynamic-rope-beyond", "factor", {"rope_scaling": {"type": "dynamic", "factor": 3.1}}),
    Mutation("llama-dynamic-rope-beyond", "trained length", {"max_position_embeddings": 63}),
    Mutation("llama-dynamic-rope-beyond", "another context window", {"context_len": 127}),
    Mutation("llama-dynamic-rope-within", "scaled all the same", {"max_position_embeddings": 127}),
    Mutation("llama3-gqa-tied", "factor", {"rope_scaling": LLAMA3_ROPE | {"factor": 8.5}}),
    Mutation("llama3-gqa-tied", "low factor", {"rope_scaling": LLAMA3_ROPE | {"low_freq_factor": 1.1}}),
    Mutation("llama3-gqa-tied", "high factor", {"rope_scaling": LLAMA3_ROPE | {"high_freq_factor": 4.2}}),
    Mutation(
        "llama3-gqa-tied",
        "trained length",
        {"rope_scaling": LLAMA3_ROPE | {"original_max_position_embeddings": 49}},
    ),
    Mutation("llama32-tied", "factor", {"rope_scaling": LLAMA32_ROPE | {"factor": 8.0}}),
    Mutation("llama-yarn-rope", "factor", {"rope_scaling": YARN_ROPE | {"factor": 4.1}}),
    Mutation(
        "llama-yarn-rope",
        "trained length",
        {"rope_scaling": YARN_ROPE | {"original_max_position_embeddings": 80}},
    ),
    Mutation("llama-yarn-rope", "attention factor", {"rope_scaling": YARN_ROPE | {"attention_factor": 1.0}}),
    Mutation("llama-yarn-rope", "truncation", {"rope_scaling": YARN_ROPE | {"truncate": False}}),
    Mutation("llama-yarn-rope", "fast turns", {"rope_scaling": YARN_ROPE | {"beta_fast": 2.0}}),
    Mutation("llama-yarn-rope", "slow turns", {"rope_scaling": YARN_ROPE | {"beta_slow": 0.5}}),
    Mutation("phi3-longrope-short", "long factors", {"context_len": 129}),
    Mutation("phi3-longrope-long", "short factors", {"context_len": 128}),
    Mutation("phi3-longrope-long", "attention factor", {"max_position_embeddings": 500}),
    Mutation("phi3-longrope-short", "trained length", {"original_max_position_embeddings": 130}),
    Mutation("phi4-mini-long", "short factors", {"context_len": 128}),
    Mutation("gemma3", "base of windowed layers", {"rope_local_base_freq": 10100.0}),
    Mutation("gemma3", "base of full layers", {"rope_theta": 1010000.0}),
    Mutation("gemma3-linear-rope", "factor", {"rope_scaling": {"rope_type": "linear", "factor": 8.2}}),
    Mutation("gemma3-linear-rope", "not scaled", {"rope_scaling": None}),
]
WINDOWS = [
    Mutation(name, f"window {window}", {"sliding_window": window})
    for name, right in (
        ("mistral-window", 11),
        ("mistral-window-of-block-size", 16),
        ("qwen2-window-above-first-layer", 9),
        ("phi3-window", 13),
        ("gemma2", 12),
        ("gemma3", 12),
    )
    for window in (right - 1, right + 1)
] + [
    Mutation("qwen2-window-above-first-layer", "first windowed layer", {"max_window_layers": 0}),
    Mutation("qwen2-tied", "unused window used", {"use_sliding_window": True, "max_window_layers": 1}),
    Mutation("gemma3", "every second layer full", {"sliding_window_pattern": 2}),
]
FAMILIES = [
    Mutation("gemma2", "attention soft-cap", {"attn_logit_softcapping": 6.1}),
    Mutation("gemma2", "no attention soft-cap", {"attn_logit_softcapping": None}),
    Mutation("gemma2", "logit soft-cap", {"final_logit_softcapping": 4.1}),
    Mutation("gemma2", "no logit soft-cap", {"final_logit_softcapping": None}),
    Mutation("gemma2", "attention scale", {"query_pre_attn_scalar": 41}),
    Mutation("gemma2", "norm offset", change=drop_norm_offset),
    Mutation("gemma2", "embedding multiplier", change=drop_embedding_scale),
    Mutation("gemma2", "exact gelu", {"hidden_activation": "gelu"}),
    Mutation("gemma3", "attention scale", {"query_pre_attn_scalar": 41}),
    Mutation("gemma3", "a logit soft-cap", {"final_logit_softcapping": 4.0}),
    Mutation("gemma3", "norm offset", change=drop_norm_offset),
    Mutation("gemma3", "embedding multiplier", change=drop_embedding_scale),
    Mutation("gemma3", "no q/k norm", change=drop_qk_norms),
    Mutation("qwen3-tied", "no q/k norm", change=drop_qk_norms),
    Mutation("olmo2", "no q/k norm", change=drop_qk_norms),
    Mutation("qwen2-untied", "no biases", change=drop_biases),
    Mutation("qwen3-odd-head", "no biases", change=drop_biases),
    Mutation("llama-mqa-biases", "no biases", change=drop_biases),
    Mutation("llama-fatrelu", "relu without its threshold", {"hidden_act": "relu"}),
    Mutation("llama-fatrelu", "half the threshold", {"hidden_act_param": 0.1}),
    Mutation("llama2-mha", "tied", {"tie_word_embeddings": True}),
    Mutation("granite-untied-biases", "tied", {"tie_word_embeddings": True}),
    Mutation("granite", "embedding multiplier", {"embedding_multiplier": 1.72}),
    Mutation("granite", "attention multiplier", {"attention_multiplier": 0.283}),
    Mutation("granite", "residual multiplier", {"residual_multiplier": 0.81}),
    Mutation("granite", "logit scale", change=drop_logit_scale),
]
FULL_ROPE, LOCAL_ROPE = GEMMA4_ROPES["full_attention"], GEMMA4_ROPES["sliding_attention"]
GEMMA4 = [
    *(
        Mutation(name, what, change=change)
        for name in ("gemma4", "gemma4-odd", "gemma4-shared")
        for what, change in (
            ("layers without their factor", drop_factors),
            ("no norm of values", drop_value_norms),
            ("no q/k norm", drop_qk_norms),
            ("scaled scores", scale_scores),
            ("embedding multiplier", drop_embedding_scale),
            ("rope interleaved", interleave_rope),
        )
    ),
    *(
        Mutation(name, what, {"rope_parameters": GEMMA4_ROPES | ropes})
        for name in ("gemma4", "gemma4-odd")
        for what, ropes in (
            ("base of full layers", {"full_attention": FULL_ROPE | {"rope_theta": 1010000.0}}),
            ("base of windowed layers", {"sliding_attention": LOCAL_ROPE | {"rope_theta": 10100.0}}),
            ("half a head turns", {"full_attention": FULL_ROPE | {"partial_rotary_factor": 0.5}}),
        )
    ),
    Mutation(
        "gemma4",
        "frequencies of a part of a head",
        {"rope_parameters": GEMMA4_ROPES | {"full_attention": FULL_ROPE | {"rope_type": "default"}}},
    ),
    Mutation("gemma4", "window", {"sliding_window": 11}),
    Mutation("gemma4", "logit soft-cap", {"final_logit_softcapping": 4.1}),
    Mutation("gemma4-odd", "eps 10 % off", {"rms_norm_eps": 1.1e-3}),
    Mutation("gemma4-shared", "keys of another layer", change=read_layer_0),
    Mutation("gemma4-per-layer", "inputs of other layers", change=shift_columns),
    Mutation("gemma4-per-layer", "table not scaled", change=drop_table_scale),
    Mutation("gemma4-per-layer", "eps 10 % off", {"rms_norm_eps": 1.1e-3}),
    Mutation("gemma4-moe", "one expert more", {"top_k_experts": 4}),
    Mutation("gemma4-moe", "no gains of experts", change=drop_gains),
    Mutation("gemma4-moe", "router not scaled", change=drop_router_scale),
    Mutation("gemma4-moe", "gate and up swapped", change=swap_gates_of_experts),
    Mutation("gemma4-moe", "not normalized", change=leave_weights),
]
MUTATIONS = (
    EVERYWHERE
    + COMMON
    + ROPES
    + WINDOWS
    + FAMILIES
    + MIXTURES
    + HYBRIDS
    + STATE_SPACES
    + LATENTS
    + GEMMA4
    + RWKV7
    + KIMI
    + FALCON
    + INDEXERS
    + COMPRESSED
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_one_mistake_breaks_the_bound(
    mutation: Mutation,
    checkpoint: Callable[[TinyModel], Path],
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model(mutation.case)
    expected = read_expected(case.name)
    wrong = mutation.architectures(architectures)
    with engine(case, checkpoint(case), wrong, open_device, device="reference") as core:
        assert logits_error(core, case, expected) > BOUND
