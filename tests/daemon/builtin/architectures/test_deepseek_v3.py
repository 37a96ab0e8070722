from __future__ import annotations

from llmd.api import Router
from llmd.builtin.architectures.deepseek_v3 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("deepseek-v3").config


def test_routers_have_sigmoids_corrections_and_groups() -> None:
    made = plan(CONFIG, None)
    routers = [op for part in made.parts for op in part.ops if isinstance(op, Router)]
    assert len(routers) == 2
    (router, _) = routers
    assert (router.score, router.groups, router.top_groups) == ("sigmoid", 4, 2)
    assert (router.factor, router.normalized, router.group_score) == (1.5, True, "sum_of_two")
    assert router.correction is not None


def test_fields_that_are_missing_are_those_of_transformers() -> None:
    fields = ("n_group", "topk_group", "routed_scaling_factor", "first_k_dense_replace")
    few = {name: value for name, value in CONFIG.items() if name not in fields}
    made = plan({**few, "num_hidden_layers": 4, "n_routed_experts": 16}, None)
    (router,) = [op for part in made.parts for op in part.ops if isinstance(op, Router)]
    assert (router.groups, router.top_groups, router.factor) == (8, 4, 2.5)
