from __future__ import annotations

import pytest

from llmd.api import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.windows import layer_windows, read_window


def test_the_familys_pattern_counts_where_no_layer_types_are_given() -> None:
    assert layer_windows(ConfigFields({}), 3, 8, [True, False, True]) == (8, None, 8)


def test_layer_types_win_over_the_familys_pattern() -> None:
    fields = ConfigFields({"layer_types": ["full_attention", "sliding_attention"]})
    assert layer_windows(fields, 2, 8, [True, False]) == (None, 8)


def test_a_null_window_is_none_and_an_absent_one_the_familys() -> None:
    assert read_window(ConfigFields({"sliding_window": None})) is None
    assert read_window(ConfigFields({})) == 4096
    assert read_window(ConfigFields({}), absent=None) is None
    assert read_window(ConfigFields({"sliding_window": 4096})) == 4096


def test_layer_types_must_name_each_layer() -> None:
    fields = ConfigFields({"layer_types": ["full_attention"]})
    with pytest.raises(CheckpointError, match="layer_types has 1 entries, expected 2"):
        layer_windows(fields, 2, 8, [True, True])


def test_an_unknown_layer_type_is_unsupported() -> None:
    fields = ConfigFields({"layer_types": ["full_attention", "linear_attention"]})
    with pytest.raises(UnsupportedModelError, match="linear_attention"):
        layer_windows(fields, 2, 8, [True, True])


def test_layers_cannot_slide_over_no_window() -> None:
    fields = ConfigFields({"layer_types": ["full_attention", "sliding_attention"]})
    with pytest.raises(CheckpointError, match="no window"):
        layer_windows(fields, 2, None, [False, False])
