"""Mistakes in Falcon-H1 that the golden bound must notice, besides those of all models with state spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.golden.models.catalog import tiny_model
from tests.golden.mutations import Mutation, norm_whole_rows

FACTORS = (
    "attention_in_multiplier",
    "attention_out_multiplier",
    "embedding_multiplier",
    "key_multiplier",
    "lm_head_multiplier",
    "mlp_multipliers",
    "ssm_in_multiplier",
    "ssm_out_multiplier",
    "ssm_multipliers",
)


def _one_percent_off(stated: float | list[float]) -> Iterator[tuple[str, Any]]:
    """Yield every way to change one number, and its place among several."""
    if isinstance(stated, float):
        yield "", 1.01 * stated
        return
    for place, number in enumerate(stated):
        yield f" {place}", [*stated[:place], 1.01 * number, *stated[place + 1 :]]


FALCON = [
    Mutation("falcon-h1", f"{name}{place} 1 % off", {name: changed})
    for name in FACTORS
    for place, changed in _one_percent_off(tiny_model("falcon-h1").config[name])
] + [
    Mutation("falcon-h1-plain", "one norm", change=norm_whole_rows),
    Mutation("falcon-h1-plain", "eps 10 % off", {"rms_norm_eps": 1.1e-3}),
]
