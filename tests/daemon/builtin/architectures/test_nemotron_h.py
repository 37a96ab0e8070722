from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from llmd.api import Activate, Experts, Linear, Op, Router
from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures.nemotron_h import plan
from tests.golden.models.catalog import tiny_model

DENSE = tiny_model("nemotron-h").config
MIXTURE = tiny_model("nemotron-h-moe").config


def ops(config: Mapping[str, Any], part: str) -> tuple[Op, ...]:
    return next(one for one in plan(config, None).parts if one.name == part).ops


def test_a_layer_has_one_half() -> None:
    made = plan(DENSE, None)
    names = [part.name for part in made.parts if part.layer is not None]
    assert names == ["layer 0 mixer", "layer 1 ffn", "layer 2 mixer", "layer 3 mixer", "layer 4 ffn"]
    assert [(group.kind, group.layers) for group in made.groups] == [("state", (0, 3)), ("paged", (2,))]
    assert made.num_layers == 5


def test_the_pattern_of_old_configurations_says_the_same() -> None:
    old = {name: value for name, value in DENSE.items() if name != "layers_block_type"}
    assert plan({**old, "hybrid_override_pattern": "M-*M-"}, None) == plan(DENSE, None)
    assert plan({**old, "layer_types": ["mamba", "mlp", "attention", "mamba", "mlp"]}, None) == plan(
        DENSE, None
    )


def test_an_unknown_kind_of_layer_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="hybrid_override_pattern is 'X'"):
        plan({**DENSE, "hybrid_override_pattern": "MX"}, None)
    with pytest.raises(UnsupportedModelError, match="layers_block_type is 'rwkv'"):
        plan({**DENSE, "layers_block_type": ["rwkv"]}, None)
    with pytest.raises(CheckpointError, match="layers"):
        plan({**DENSE, "layers_block_type": []}, None)


def test_networks_have_no_gate() -> None:
    norm, up, activate, down, _ = ops(DENSE, "layer 1 ffn")
    assert norm.tensors[0] is not None
    assert norm.tensors[0].name == "backbone.layers.1.norm.weight"
    assert isinstance(up, Linear)
    assert up.weights[0].name == "backbone.layers.1.mixer.up_proj.weight"
    assert activate == Activate("up", "y", "relu2")
    assert isinstance(down, Linear)


def test_experts_have_no_gate_either() -> None:
    found = ops(MIXTURE, "layer 1 ffn")
    experts = next(op for op in found if isinstance(op, Experts))
    assert (experts.gate, experts.activation) == (None, "relu2")
    router = next(op for op in found if isinstance(op, Router))
    assert (router.score, router.factor, router.normalized) == ("sigmoid", 1.5, True)
    assert Activate("up", "inner", "relu2") in found


def test_experts_may_read_and_write_fewer_elements() -> None:
    found = ops({**MIXTURE, "moe_latent_size": 24}, "layer 1 ffn")
    experts = next(op for op in found if isinstance(op, Experts))
    assert (experts.x, experts.down.view_shape) == ("latent", (8, 24, 32))
    names = [ref.name.rpartition("mixer.")[2] for op in found if isinstance(op, Linear) for ref in op.weights]
    assert names[:2] == ["fc1_latent_proj.weight", "fc2_latent_proj.weight"]


def test_the_draft_head_is_left_out() -> None:
    found = plan(DENSE, None)
    assert [left.marks for left in found.left_out] == [("mtp.", f"blk.{found.num_layers}.")]
