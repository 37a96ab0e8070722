"""Mistakes in hybrids of linear and full attention that the golden bound must notice."""

from __future__ import annotations

from tests.golden.mutations import (
    Mutation,
    drop_gates,
    drop_norm_offset,
    drop_qk_norms,
    swap_decay_and_beta,
    swap_filters,
    swap_queries_and_keys,
    swap_rates_and_bias,
    tile_heads,
)

HYBRIDS = [
    Mutation(name, what, change=change)
    for name in ("qwen3-next", "qwen3-5", "qwen3-5-moe")
    for what, change in (
        ("decay and share swapped", swap_decay_and_beta),
        ("queries and keys swapped", swap_queries_and_keys),
        ("filters swapped", swap_filters),
        ("rates and biases swapped", swap_rates_and_bias),
        ("heads in another order", tile_heads),
        ("no gates", drop_gates),
        ("norm offset", drop_norm_offset),
        ("no q/k norm", drop_qk_norms),
    )
] + [
    *(
        Mutation(name, "half a head rotated", {"partial_rotary_factor": 0.5})
        for name in ("qwen3-next", "qwen3-5", "qwen3-5-moe")
    ),
    Mutation("qwen3-next", "not normalized", {"norm_topk_prob": False}),
    Mutation("qwen3-next-odd", "normalized", {"norm_topk_prob": True}),
    Mutation("qwen3-5-tied", "eps 10 % off", {"rms_norm_eps": 1.1e-3}),
    Mutation("qwen3-5-moe", "not normalized", {"norm_topk_prob": False}),
]
