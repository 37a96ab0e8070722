from __future__ import annotations

import pytest

from llmd.api import CheckpointError, Experts, ModelPlan, Router
from llmd.builtin.architectures.glm4_moe_lite import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("glm4-moe-lite").config
LAYERS = {name: value for name, value in CONFIG.items() if name != "first_k_dense_replace"}


def mixed(made: ModelPlan) -> list[bool]:
    parts = [part for part in made.parts if part.kind == "ffn"]
    return [any(isinstance(op, Experts) for op in part.ops) for part in parts]


def test_layers_without_experts_are_counted_or_listed() -> None:
    assert mixed(plan(LAYERS, None)) == [False, True, True]
    assert mixed(plan({**CONFIG, "first_k_dense_replace": 2}, None)) == [False, False, True]
    listed = {**LAYERS, "mlp_layer_types": ["dense", "dense", "sparse"]}
    assert mixed(plan(listed, None)) == [False, False, True]
    with pytest.raises(CheckpointError, match="a dense layer after a sparse one"):
        plan({**LAYERS, "mlp_layer_types": ["dense", "sparse", "dense"]}, None)


def test_routers_have_sigmoids_and_corrections() -> None:
    router = next(op for part in plan(CONFIG, None).parts for op in part.ops if isinstance(op, Router))
    assert (router.score, router.groups, router.factor) == ("sigmoid", 1, 1.8)
    assert router.correction is not None
