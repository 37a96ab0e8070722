"""The plan has what a configuration says; a damaged configuration is refused."""

from __future__ import annotations

import pytest

from llmd.api import CheckpointError
from llmd_architecture_example.plugin import llmd_architectures

CONFIG = {
    "architectures": ["ExampleForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}


def test_plans_the_layers_of_the_configuration() -> None:
    (family,) = llmd_architectures()
    plan = family.plan(CONFIG, 32)
    assert (plan.num_layers, plan.context_len, plan.max_context_len) == (2, 32, 128)
    assert plan.groups[0].head_dim == 16
    assert "model.layers.1.mlp.down_proj.weight" in {tensor.name for tensor in plan.tensor_refs()}


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size"])
def test_a_missing_field_is_named(name: str) -> None:
    (family,) = llmd_architectures()
    with pytest.raises(CheckpointError, match=name):
        family.plan({field: value for field, value in CONFIG.items() if field != name}, None)
