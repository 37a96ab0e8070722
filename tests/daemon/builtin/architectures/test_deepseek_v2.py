from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from llmd.api import CheckpointError, Experts, Router, UnsupportedModelError
from llmd.builtin.architectures.deepseek_v2 import plan
from tests.golden.models.catalog import tiny_model

LITE = tiny_model("deepseek-v2-lite").config
GROUPS = tiny_model("deepseek-v2-groups").config


def router(config: Mapping[str, Any]) -> Router:
    return next(op for part in plan(config, None).parts for op in part.ops if isinstance(op, Router))


def test_routers_have_softmax_and_groups_with_their_largest_scores() -> None:
    grouped = router(GROUPS)
    assert (grouped.score, grouped.normalized, grouped.correction) == ("softmax", False, None)
    assert (grouped.groups, grouped.top_groups, grouped.group_score) == (4, 2, "largest")
    assert grouped.factor == 1.7


def test_the_method_says_whether_there_are_groups() -> None:
    assert (router(LITE).groups, router(LITE).top_groups) == (1, 1)
    assert router({**GROUPS, "topk_method": "greedy"}).groups == 1
    with pytest.raises(UnsupportedModelError, match="topk_method"):
        plan({**LITE, "topk_method": "noaux_tc"}, None)


def test_what_the_family_does_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="norm_topk_prob"):
        plan({**LITE, "norm_topk_prob": True}, None)
    with pytest.raises(CheckpointError, match="8 experts cannot be in 3 groups"):
        plan({**GROUPS, "n_group": 3}, None)


def test_all_layers_have_experts_unless_the_configuration_says_otherwise() -> None:
    few = {name: value for name, value in LITE.items() if name != "first_k_dense_replace"}
    parts = [part for part in plan(few, None).parts if part.kind == "ffn"]
    assert all(any(isinstance(op, Experts) for op in part.ops) for part in parts)
