from __future__ import annotations

import pytest

from llmd.api import Add, Attention, CheckpointError, Embed, Head
from llmd.builtin.architectures.granite import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("granite").config


def test_each_multiplier_stands_where_it_belongs() -> None:
    made = plan(CONFIG, None)
    ops = [op for part in made.parts for op in part.ops]
    assert [op.scale for op in ops if isinstance(op, Embed)] == [1.7]
    assert {op.scale for op in ops if isinstance(op, Attention)} == {0.28}
    assert {op.scale for op in ops if isinstance(op, Add)} == {0.8}
    assert [op.scale for op in ops if isinstance(op, Head)] == [pytest.approx(1 / 3)]


def test_logits_cannot_be_divided_by_zero() -> None:
    with pytest.raises(CheckpointError, match="logits_scaling is 0"):
        plan({**CONFIG, "logits_scaling": 0}, None)
