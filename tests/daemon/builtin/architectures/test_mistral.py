from __future__ import annotations

from llmd.api import Rope
from llmd.builtin.architectures.mistral import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("mistral-window").config


def test_every_layer_has_the_window() -> None:
    assert [group.window for group in plan(CONFIG, None).groups] == [11]


def test_a_null_window_means_full_attention() -> None:
    assert [group.window for group in plan({**CONFIG, "sliding_window": None}, None).groups] == [None]


def test_a_window_that_is_not_stated_is_that_of_the_family() -> None:
    unsaid = {name: value for name, value in CONFIG.items() if name != "sliding_window"}
    assert [group.window for group in plan(unsaid, None).groups] == [4096]


def test_layer_types_are_heeded() -> None:
    types = ["full_attention", "sliding_attention", "full_attention"]
    groups = plan({**CONFIG, "layer_types": types}, None).groups
    assert [(group.window, group.layers) for group in groups] == [(None, (0, 2)), (11, (1,))]


def test_neighbours_are_rotated_where_the_configuration_says_so() -> None:
    rotations = [
        op for op in plan({**CONFIG, "rope_interleave": True}, None).parts[1].ops if isinstance(op, Rope)
    ]
    assert [op.interleaved for op in rotations] == [True, True]
