"""Mistakes in mixtures of experts that the golden bound must notice."""

from __future__ import annotations

from tests.golden.models.mixtures import GPT_OSS_ROPE
from tests.golden.mutations import (
    Mutation,
    activate_by_silu,
    drop_biases,
    drop_biases_of_experts,
    drop_correction,
    drop_gates,
    drop_limit,
    drop_offset,
    drop_qk_norms,
    drop_router_bias,
    drop_sinks,
    leave_weights,
    score_by_softmax,
    score_groups_by_largest,
    swap_gates_of_experts,
)

MIXTURES = [
    Mutation("qwen2-moe", "normalized", {"norm_topk_prob": True}),
    Mutation("qwen2-moe", "shared expert not gated", change=drop_gates),
    Mutation("qwen3-moe", "not normalized", {"norm_topk_prob": False}),
    Mutation("qwen3-moe-one-expert", "normalized", {"norm_topk_prob": True}),
    Mutation("olmoe", "normalized", {"norm_topk_prob": True}),
    Mutation("glm4-moe", "factor", {"routed_scaling_factor": 1.51}),
    Mutation("glm4-moe", "not normalized", {"norm_topk_prob": False}),
    Mutation("glm4-moe", "no correction", change=drop_correction),
    Mutation("glm4-moe-groups", "no groups", {"n_group": 1, "topk_group": 1}),
    Mutation("glm4-moe-groups", "one group less", {"topk_group": 1}),
    Mutation("glm4-moe-groups", "largest in a group", change=score_groups_by_largest),
    Mutation("glm4-moe-groups", "softmax", change=score_by_softmax),
    *(
        Mutation(name, what, change=change)
        for name in ("gpt-oss", "gpt-oss-floats")
        for what, change in (
            ("no sinks", drop_sinks),
            ("router without a bias", drop_router_bias),
            ("experts without biases", drop_biases_of_experts),
            ("gate and up swapped", swap_gates_of_experts),
            ("nothing added to up", drop_offset),
        )
    ),
    Mutation("gpt-oss-floats", "limit of gates", {"swiglu_limit": 0.91}),
    Mutation("gpt-oss-floats", "no limit of gates", change=drop_limit),
    Mutation("gpt-oss", "truncated YaRN", {"rope_scaling": GPT_OSS_ROPE | {"truncate": True}}),
    Mutation("gpt-oss", "window", {"sliding_window": 11}),
    *(
        Mutation(name, "not normalized", change=leave_weights)
        for name in ("mixtral", "granite-moe", "gpt-oss")
    ),
    Mutation("mixtral", "a window", {"sliding_window": 12}),
    Mutation(
        "qwen2-moe",
        "unused window used",
        {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 1},
    ),
    Mutation("qwen2-moe", "no biases", change=drop_biases),
    *(Mutation(name, "no q/k norm", change=drop_qk_norms) for name in ("qwen3-moe", "olmoe")),
    *(
        Mutation("gpt-oss", f"YaRN: {name}", {"rope_scaling": GPT_OSS_ROPE | {name: wrong}})
        for name, wrong in (
            ("factor", 8.1),
            ("original_max_position_embeddings", 17),
            ("beta_fast", 1.5),
            ("beta_slow", 1.1),
        )
    ),
    Mutation(
        "gpt-oss",
        "windows of other layers",
        {"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]},
    ),
    Mutation("gpt-oss", "no YaRN", {"rope_scaling": None}),
    Mutation("gpt-oss", "another activation", change=activate_by_silu),
    Mutation("gpt-oss", "no biases", change=drop_biases),
    Mutation("granite-moe", "attention multiplier", {"attention_multiplier": 0.283}),
    Mutation("granite-moe", "embedding multiplier", {"embedding_multiplier": 1.72}),
    Mutation("granite-moe", "residual multiplier", {"residual_multiplier": 0.81}),
    Mutation("granite-moe", "logit scale", {"logits_scaling": 3.03}),
    Mutation("glm4-moe", "half of what is rotated", {"partial_rotary_factor": 0.25}),
    Mutation("glm4-moe", "no q/k norm", change=drop_qk_norms),
    Mutation("glm4-moe", "no biases", change=drop_biases),
]
