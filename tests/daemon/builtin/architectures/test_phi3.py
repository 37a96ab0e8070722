from __future__ import annotations

import pytest

from llmd.api import CheckpointError, Rope
from llmd.builtin.architectures.phi3 import plan
from tests.golden.models.catalog import tiny_model

MINI = tiny_model("phi4-mini-long").config


def test_partial_rotation_leaves_the_end_of_each_head() -> None:
    rope = next(op for op in plan(MINI, None).parts[1].ops if isinstance(op, Rope))
    assert (rope.table.rotary_dim, rope.head_dim) == (18, 24)


def test_the_longest_context_takes_the_long_factors() -> None:
    longest, short = plan(MINI, None), plan(MINI, 128)
    assert longest.context_len == 512
    assert longest.parts[1] != short.parts[1]
    assert longest.parts[1] == plan(MINI, 129).parts[1]


def test_factors_must_fit_the_rotated_pairs() -> None:
    with pytest.raises(CheckpointError, match="short_factor has 9 entries, expected 12"):
        plan({**MINI, "partial_rotary_factor": 1.0}, None)


def test_a_window_holds_for_every_layer() -> None:
    assert [group.window for group in plan(tiny_model("phi3-window").config, None).groups] == [13]
