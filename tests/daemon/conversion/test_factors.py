"""Multipliers become factors of tensors. tests/golden/test_conversion.py tests that models stay the same."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.api import HIDDEN, Add, ModelPlan
from llmd.conversion.factors import is_multiplier
from llmd.conversion.tensor_map import map_tensors
from llmd.models.gguf.state_spaces import FALCON_MULTIPLIERS
from tests.daemon.models.gguf.test_config_keys import plan


def factors(source: ModelPlan, target: ModelPlan) -> dict[str, list[float]]:
    """Return the factors of the parts of each tensor."""
    return {
        name: [part.factor for part in tensor.parts] for name, tensor in map_tensors(source, target).items()
    }


def falcon(**fields: Any) -> ModelPlan:
    return plan("falcon-h1", **{**FALCON_MULTIPLIERS, **fields})


def test_only_sums_of_a_value_with_itself_are_multipliers() -> None:
    assert is_multiplier(Add("gate", "gate", "gate", 0.5))
    assert not is_multiplier(Add(HIDDEN, "y", HIDDEN, 0.5))


@pytest.mark.parametrize(
    ("fields", "tensor", "found"),
    [
        ({"embedding_multiplier": 3.0}, "model.embed_tokens.weight", [3.0]),
        ({"lm_head_multiplier": 0.5}, "lm_head.weight", [0.5]),
        ({"key_multiplier": 0.7}, "model.layers.0.self_attn.k_proj.weight", [0.7]),
        ({"attention_in_multiplier": 2.0}, "model.layers.0.self_attn.k_proj.weight", [4.0]),
        ({"attention_out_multiplier": 0.3}, "model.layers.0.self_attn.o_proj.weight", [0.3]),
        ({"ssm_out_multiplier": 0.3}, "model.layers.0.mamba.out_proj.weight", [0.3]),
        ({"mlp_multipliers": [0.8, 1.3]}, "model.layers.0.feed_forward.gate_proj.weight", [0.8]),
        ({"mlp_multipliers": [0.8, 1.3]}, "model.layers.0.feed_forward.down_proj.weight", [1.3]),
        ({"ssm_multipliers": [1.0, 2.0, 3.0, 4.0, 5.0]}, "model.layers.0.mamba.in_proj.weight", [1, 2, 3, 4, 5]),
    ],
)  # fmt: skip
def test_a_multiplier_changes_what_it_would_multiply(
    fields: dict[str, Any], tensor: str, found: list[float]
) -> None:
    changed = factors(falcon(**fields), falcon())
    assert changed[tensor] == pytest.approx(found)
    whole = falcon(**fields)
    assert {factor for each in factors(whole, whole).values() for factor in each} == {1.0}
    assert factors(falcon(), falcon(**fields))[tensor] == pytest.approx([1 / one for one in found])
