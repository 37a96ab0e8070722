from __future__ import annotations

import pytest

from llmd.api import Attention, Glu, Norm, Rope
from llmd.api.ops import KVOp
from llmd.testing.plans import TinyModel


def test_the_small_model_uses_every_option_that_a_backend_must_have() -> None:
    ops = [op for part in TinyModel().plan().parts for op in part.ops]
    assert {op.activation for op in ops if isinstance(op, Glu)} == {"silu", "gelu", "gelu_tanh", "relu2"}
    assert {op.interleaved for op in ops if isinstance(op, Rope)} == {True, False}
    assert {op.method for op in ops if isinstance(op, Norm)} == {"rms", "layer"}
    assert {op.softcap is None for op in ops if isinstance(op, Attention)} == {True, False}


def test_layers_alternate_between_groups_only_where_there_is_a_window() -> None:
    assert [group.layers for group in TinyModel().plan().groups] == [(0, 2), (1, 3)]
    assert [group.layers for group in TinyModel(window=None).plan().groups] == [(0, 1, 2, 3)]


@pytest.mark.parametrize("window", [20, None])
def test_half_of_the_layers_of_a_hybrid_have_states(window: int | None) -> None:
    plan = TinyModel(layers=6, hybrid=True, window=window).plan()
    assert [group.layers for group in plan.groups] == ([(0, 4), (1, 5)] if window else [(0, 1, 4, 5)]) + [
        (2, 3)
    ]
    assert [group.kind for group in plan.groups] == ["paged"] * (len(plan.groups) - 1) + ["state"]
    of_layers = {op.layer: op.group for part in plan.parts for op in part.ops if isinstance(op, KVOp)}
    assert of_layers == {layer: group.id for group in plan.groups for layer in group.layers}
