from __future__ import annotations

import pytest

from llmd.api import Norm, Router
from llmd.api.errors import UnsupportedModelError
from llmd.builtin.architectures.olmoe import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("olmoe").config


def test_norms_of_queries_and_keys_span_all_heads() -> None:
    norms = [op for op in plan(CONFIG, None).parts[1].ops if isinstance(op, Norm)]
    assert [(op.x, op.heads, op.weight and op.weight.shape) for op in norms[1:]] == [
        ("q", 1, (64,)),
        ("k", 1, (32,)),
    ]


def test_the_weights_of_experts_are_their_scores() -> None:
    routers = [op for part in plan(CONFIG, None).parts for op in part.ops if isinstance(op, Router)]
    assert [(op.normalized, op.top_k) for op in routers] == [(False, 4)] * 2


def test_clipped_queries_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"clip_qkv is 8.0"):
        plan({**CONFIG, "clip_qkv": 8.0}, None)
