from __future__ import annotations

from llmd.api import Experts, Gate, Norm
from llmd.builtin.architectures.qwen3_moe import plan
from tests.golden.models.catalog import tiny_model

PLAN = plan(tiny_model("qwen3-moe-tied").config, None)


def test_layers_may_be_left_without_experts() -> None:
    parts = [part for part in PLAN.parts if part.kind == "ffn"]
    assert [any(isinstance(op, Experts) for op in part.ops) for part in parts] == [True, False, True]
    assert not any(isinstance(op, Gate) for part in parts for op in part.ops)


def test_queries_and_keys_are_normalised_per_head_as_in_qwen3() -> None:
    norms = [op for op in PLAN.parts[1].ops if isinstance(op, Norm)]
    assert [(op.x, op.heads) for op in norms[1:]] == [("q", 4), ("k", 2)]
    assert PLAN.architecture == "qwen3_moe"
