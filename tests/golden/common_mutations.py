"""Mistakes that are possible in most families, which the golden bound must notice in each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.golden.models.catalog import tiny_model
from tests.golden.mutations import (
    Mutation,
    rotate_other_pairs,
    swap_gate_and_up,
    swap_gates_of_experts,
)

MIXTURES: Mapping[str, int] = {
    "mixtral": 3,
    "qwen2-moe": 3,
    "qwen3-moe": 3,
    "olmoe": 3,
    "granite-moe": 3,
    "granite-moe-shared": 3,
    "granite-hybrid-moe": 3,
    "glm4-moe": 4,
    "gpt-oss": 3,
    "qwen3-next": 4,
    "qwen3-5-moe": 2,
    "deepseek-v2-lite": 4,
    "deepseek-v2-groups": 2,
    "deepseek-v3": 4,
    "glm4-moe-lite": 2,
    "deepseek-v32": 4,
    "glm-moe-dsa": 2,
}
"""Mixtures with RoPE, and a number of experts for each row that is one more or less."""
ROTATING = (*MIXTURES, "qwen3-5", "falcon-h1", "gemma2")
"""Models with RoPE, besides those of `tests.golden.test_mutations.EVERYWHERE`."""
EPSILONS: Mapping[str, str] = {
    **dict.fromkeys((*ROTATING, "gemma3", "granite-hybrid", "kimi-linear"), "rms_norm_eps"),
    "nemotron-h": "layer_norm_epsilon",
    "nemotron-h-moe": "layer_norm_epsilon",
}
"""The field with the epsilon of norms."""
LARGE_ROWS = ("deepseek-v2-groups", "granite-moe-shared")
"""Models that such an epsilon changes by less than the bound."""
ACTIVATIONS: Mapping[str, str] = {
    **dict.fromkeys((*ROTATING, "granite-hybrid", "kimi-linear"), "hidden_act"),
    **dict.fromkeys(("gemma3", "gemma4", "gemma4-moe"), "hidden_activation"),
    "nemotron-h": "mlp_hidden_act",
}
"""The field with the activation of networks and experts."""
GATED = (
    "qwen2-moe",
    "qwen3-next",
    "qwen3-5",
    "granite-moe-shared",
    "granite-hybrid",
    "glm4-moe",
    "deepseek-v2-lite",
    "deepseek-v3",
    "glm4-moe-lite",
    "deepseek-v32",
    "glm-moe-dsa",
    "kimi-linear",
    "falcon-h1",
    "gemma2",
    "gemma3",
    "gemma4",
)
"""Models with gated networks, or with such an expert that all rows share."""
ONE_ACTIVATION = ("gpt-oss", "gemma2")
"""Models of which other mistakes concern the activation."""


def _all() -> Iterator[Mutation]:
    for name, wrong in MIXTURES.items():
        yield Mutation(name, f"{wrong} experts", {"num_experts_per_tok": wrong})
        yield Mutation(name, "gates of experts swapped with up matrices", change=swap_gates_of_experts)
    for name in ROTATING:
        theta = tiny_model(name).config["rope_theta"]
        yield Mutation(name, "theta 1 % off", {"rope_theta": 1.01 * theta})
        yield Mutation(name, "other pairs rotated", change=rotate_other_pairs)
    for name in GATED:
        yield Mutation(name, "gate and up swapped", change=swap_gate_and_up)
    for name, field in EPSILONS.items():
        if name not in LARGE_ROWS:
            yield Mutation(name, "eps 10 % off", {field: 1.1e-3})
    for name, field in ACTIVATIONS.items():
        if name not in ONE_ACTIVATION:
            yield Mutation(name, "another activation", {field: "gelu"})


COMMON = list(_all())
