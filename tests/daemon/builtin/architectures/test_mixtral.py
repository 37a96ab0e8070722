from __future__ import annotations

from llmd.api import Experts, Router
from llmd.builtin.architectures.mixtral import plan
from tests.golden.models.catalog import tiny_model

PLAN = plan(tiny_model("mixtral").config, None)


def test_every_layer_has_experts_with_normalized_weights() -> None:
    routers = [op for part in PLAN.parts for op in part.ops if isinstance(op, Router)]
    assert len(routers) == PLAN.num_layers
    assert all(router.normalized and router.score == "softmax" and router.top_k == 2 for router in routers)


def test_the_second_matrix_of_an_expert_is_the_last() -> None:
    (experts,) = (op for op in PLAN.parts[2].ops if isinstance(op, Experts))
    assert experts.gate is not None
    names = [ref.name.split("*.")[1] for ref in (experts.gate, experts.up, experts.down)]
    assert names == ["w1.weight", "w3.weight", "w2.weight"]
