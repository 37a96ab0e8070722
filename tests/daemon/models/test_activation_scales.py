from __future__ import annotations

import pytest

from llmd.models.activation_scales import without_activation_scales


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.mlp.down_proj.input_scale",
        "model.layers.0.mlp.experts.3.up_proj.input_global_scale",
        "model.layers.0.self_attn.k_proj.k_scale",
        "model.layers.0.self_attn.attn.v_scale",
    ],
)
def test_scales_of_activations_keys_and_values_are_left_out(name: str) -> None:
    weights = {"model.layers.0.mlp.down_proj.weight": 1, "model.layers.0.mlp.down_proj.weight_scale": 2}
    assert without_activation_scales({name: 0, **weights}) == weights
