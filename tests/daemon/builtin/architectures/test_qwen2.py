from __future__ import annotations

import pytest

from llmd.api import CheckpointError, Linear
from llmd.builtin.architectures.qwen2 import plan
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("qwen2-untied").config


def test_queries_keys_and_values_have_biases_and_the_output_has_none() -> None:
    qkv, out = (op for op in plan(CONFIG, None).parts[1].ops if isinstance(op, Linear))
    assert all(qkv.biases)
    assert out.biases == (None,)


def test_a_window_that_is_not_used_does_not_count() -> None:
    assert CONFIG["sliding_window"] is not None
    assert [group.window for group in plan(CONFIG, None).groups] == [None]


def test_a_used_window_begins_at_its_first_layer() -> None:
    windowed = {**CONFIG, "use_sliding_window": True, "max_window_layers": 1}
    groups = plan(windowed, None).groups
    assert [(group.window, group.layers) for group in groups] == [(None, (0,)), (9, (1,))]


def test_a_used_window_begins_at_layer_28_where_nothing_is_said() -> None:
    unsaid = {name: value for name, value in CONFIG.items() if name != "max_window_layers"}
    groups = plan({**unsaid, "use_sliding_window": True, "num_hidden_layers": 30}, None).groups
    assert next(group.layers for group in groups if group.window) == (28, 29)


def test_layer_types_cannot_slide_where_the_window_is_not_used() -> None:
    with pytest.raises(CheckpointError, match="no window"):
        plan({**CONFIG, "layer_types": ["full_attention", "sliding_attention"]}, None)
