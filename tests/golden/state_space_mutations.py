"""Mistakes in models with state spaces that the golden bound must notice."""

from __future__ import annotations

from tests.golden.mutations import (
    Mutation,
    drop_biases,
    drop_bounds,
    drop_correction,
    leave_weights,
    norm_whole_rows,
    same,
    score_by_softmax,
    swap_b_and_c,
    swap_filter_biases,
    swap_filters_of_b_and_c,
    swap_rates_and_skips,
    swap_rates_and_time_bias,
)

STATE_SPACES = [
    Mutation(name, what, change=change)
    for name in ("granite-hybrid", "nemotron-h", "mamba2", "falcon-h1")
    for what, change in (
        ("b and c swapped", swap_b_and_c),
        ("filters swapped", swap_filters_of_b_and_c),
        ("biases of filters swapped", swap_filter_biases),
        ("rates and skips swapped", swap_rates_and_skips),
        ("rates and biases swapped", swap_rates_and_time_bias),
    )
] + [
    Mutation("granite-hybrid", "positions", {"position_embedding_type": "rope"}),
    Mutation("granite-hybrid-moe", "no positions", {"position_embedding_type": "nope"}),
    Mutation("granite-hybrid-moe", "one norm", change=norm_whole_rows),
    Mutation("granite-hybrid-moe", "no biases", change=drop_biases),
    Mutation("nemotron-h", "one norm", change=norm_whole_rows),
    Mutation("mamba2-odd", "no bounds", change=drop_bounds),
    Mutation("mamba2-odd", "least time", {"time_step_limit": [0.31, 1.5]}),
    Mutation("mamba2-odd", "most time", {"time_step_limit": [0.3, 1.49]}),
    Mutation("mamba2-odd", "eps 10 % off", {"layer_norm_epsilon": 1.1e-3}),
    Mutation("granite-hybrid", "attention multiplier", {"attention_multiplier": 0.283}),
    Mutation("granite-hybrid", "embedding multiplier", {"embedding_multiplier": 1.72}),
    Mutation("granite-hybrid", "residual multiplier", {"residual_multiplier": 0.81}),
    Mutation("granite-hybrid", "logit scale", {"logits_scaling": 3.03}),
    Mutation("granite-hybrid-moe", "not normalized", change=leave_weights),
    *(
        Mutation(name, what, config, change)
        for name in ("nemotron-h-moe", "nemotron-h-latent")
        for what, config, change in (
            ("softmax", {}, score_by_softmax),
            ("no correction", {}, drop_correction),
            ("factor", {"routed_scaling_factor": 1.0}, same),
            ("activation", {"mlp_hidden_act": "relu"}, same),
            ("one expert less", {"num_experts_per_tok": 2}, same),
        )
    ),
    *(
        Mutation(name, "bounds of times", {"time_step_limit": [0.1, 1.0]})
        for name in ("granite-hybrid", "nemotron-h", "falcon-h1")
    ),
    Mutation("nemotron-h-one-expert", "no groups", {"n_group": 1, "topk_group": 1}),
    Mutation("nemotron-h-one-expert", "one group less", {"topk_group": 1}),
    Mutation("nemotron-h-moe", "not normalized", {"norm_topk_prob": False}),
    Mutation("nemotron-h-latent", "normalized", {"norm_topk_prob": True}),
]
