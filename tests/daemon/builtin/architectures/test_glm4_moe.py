from __future__ import annotations

import pytest

from llmd.api import Experts, Router
from llmd.api.errors import CheckpointError
from llmd.builtin.architectures.glm4_moe import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("glm4-moe").config
GROUPS = tiny_model("glm4-moe-groups").config


def test_the_first_layers_have_no_experts() -> None:
    parts = [part for part in plan(CONFIG, None).parts if part.kind == "ffn"]
    assert [any(isinstance(op, Experts) for op in part.ops) for part in parts] == [False, True, True]


def test_routers_have_sigmoids_corrections_and_groups() -> None:
    router = next(op for part in plan(GROUPS, None).parts for op in part.ops if isinstance(op, Router))
    assert (router.score, router.groups, router.top_groups, router.group_score) == (
        "sigmoid",
        4,
        2,
        "sum_of_two",
    )
    assert router.correction is not None
    assert router.correction.name == "model.layers.1.mlp.gate.e_score_correction_bias"
    scaled = next(op for part in plan(CONFIG, None).parts for op in part.ops if isinstance(op, Router))
    assert (scaled.factor, scaled.normalized) == (1.5, True)


@pytest.mark.parametrize("wrong", [{"n_group": 3}, {"n_group": 2, "topk_group": 3}])
def test_groups_must_fit(wrong: dict[str, int]) -> None:
    with pytest.raises(CheckpointError, match="8 experts cannot be in"):
        plan({**GROUPS, **wrong}, None)


def test_the_draft_head_after_the_last_layer_is_left_out() -> None:
    (left_out,) = plan(CONFIG, None).left_out
    assert "model.layers.3." in left_out.marks
