from __future__ import annotations

from typing import Any

import pytest

from llmd.api import CheckpointError
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.shape import Shape, read_shape

SIZES = {
    "hidden_size": 48,
    "intermediate_size": 96,
    "vocab_size": 131,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def shape(default_head_dim: int | None = None, **changes: Any) -> Shape:
    return read_shape(ConfigFields(SIZES | changes), default_head_dim=default_head_dim)


def test_heads_divide_the_hidden_size_where_nothing_else_is_said() -> None:
    assert (shape().head_dim, shape().kv_heads) == (12, 4)


def test_a_stated_head_dim_needs_no_divisible_hidden_size() -> None:
    odd = shape(hidden_size=50, head_dim=20, num_key_value_heads=2)
    assert (odd.q_width, odd.kv_width) == (80, 40)


def test_a_family_has_a_head_dim_of_its_own() -> None:
    assert shape(128).head_dim == 128
    assert shape(128, head_dim=16).head_dim == 16


@pytest.mark.parametrize("name", SIZES)
def test_every_size_is_required(name: str) -> None:
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        shape(**{name: None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads 3 does not divide num_attention_heads 4"),
        ({"num_key_value_heads": 8}, "num_key_value_heads 8 does not divide num_attention_heads 4"),
        ({"hidden_size": 50}, "hidden_size 50 is not a multiple of num_attention_heads 4"),
        ({"num_hidden_layers": 5000}, r"num_hidden_layers is 5000, expected an integer in 1\.\.4096"),
        ({"head_dim": 1 << 20}, "head_dim is 1048576"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        shape(**changes)
