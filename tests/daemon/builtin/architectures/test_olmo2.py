from __future__ import annotations

from llmd.api import HIDDEN, Norm
from llmd.builtin.architectures.olmo2 import plan
from tests.golden.models.catalog import tiny_model

PLAN = plan(tiny_model("olmo2-gqa").config, None)


def test_parts_read_the_residual_stream_unnormalised() -> None:
    layers = [part for part in PLAN.parts if part.layer is not None]
    assert all(part.ops[0].kind == "linear" and part.ops[0].reads == (HIDDEN,) for part in layers)


def test_norms_of_queries_and_keys_span_all_heads() -> None:
    norms = [op for op in PLAN.parts[1].ops if isinstance(op, Norm)]
    assert [(op.x, op.heads, op.weight and op.weight.shape) for op in norms] == [
        ("q", 1, (56,)),
        ("k", 1, (28,)),
        ("y", 1, (56,)),
    ]
