from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from llmd.api import Glu, Linear, Norm, TensorRef
from llmd.api.errors import CheckpointError
from llmd.api.state_ops import StateSpace
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.layer import LayerStyle
from llmd.builtin.architectures.mamba import Mamba, mamba_ops, read_mamba
from llmd.builtin.architectures.shape import Shape
from llmd.models.space_names import SpaceNames

SHAPE = Shape(
    hidden_size=8, intermediate_size=20, vocab_size=30, num_layers=2, heads=2, kv_heads=1, head_dim=4
)
STYLE = LayerStyle(eps=1e-5, activation="silu", scale=0.5)
LAYER = "model.layers.1.mamba"
MAMBA = Mamba("mamba", heads=4, groups=2, head_dim=5, state_size=3, taps=4)
FIELDS = SpaceNames("heads", "dim", "groups", "state", "taps", "filter_bias", "bias")
SIZES = {"heads": 6, "dim": 5, "groups": 3, "state": 7}


def ops(mamba: Mamba = MAMBA) -> tuple[Any, ...]:
    return mamba_ops(mamba, SHAPE, STYLE, 1, 7)


def test_the_state_space_stands_between_a_projection_and_a_gated_norm() -> None:
    _, project, space, glu, norm, out, _ = ops()
    assert isinstance(project, Linear)
    assert project.outs == ("z", "x", "b", "c", "time")
    assert [ref.rows for ref in project.weights] == [(0, 20), (20, 40), (40, 46), (46, 52), (52, 56)]
    assert isinstance(space, StateSpace)
    assert (space.group, space.layer, space.taps, space.most_time) == (7, 1, 4, None)
    assert space.state_elements * 4 == MAMBA.state_bytes
    assert glu == Glu("z", "y", "y", "silu")
    weight = TensorRef(f"{LAYER}.norm.weight", (20,))
    assert norm == Norm("y", "y", weight, 1e-5, heads=2, own_weights=True)
    assert out.weights[0] == TensorRef(f"{LAYER}.out_proj.weight", (8, 20))


def test_filters_are_rows_of_one_tensor() -> None:
    space = ops()[2]
    assert [ref.rows for ref in (space.x_taps, space.b_taps, space.c_taps)] == [(0, 20), (20, 26), (26, 32)]
    assert space.c_bias == TensorRef(f"{LAYER}.conv1d.bias", (32,), rows=(26, 32))
    assert ops(structs.replace(MAMBA, has_filter_bias=False))[2].c_bias is None


def test_matrices_may_have_biases() -> None:
    biased = ops(structs.replace(MAMBA, has_bias=True))
    assert biased[1].biases[4] == TensorRef(f"{LAYER}.in_proj.bias", (56,), rows=(52, 56))
    assert biased[5].biases == (TensorRef(f"{LAYER}.out_proj.bias", (8,)),)


def test_one_group_has_one_norm() -> None:
    norm = ops(structs.replace(MAMBA, groups=1))[4]
    assert (norm.heads, norm.own_weights) == (1, False)


def test_sizes_are_read_under_the_names_of_a_family() -> None:
    found = read_mamba(ConfigFields({**SIZES, "bias": True}), FIELDS, "mixer")
    assert found == Mamba("mixer", 6, 3, 5, 7, 4, has_bias=True)
    negative = {**SIZES, "negative_rates": True, "time_step_limit": [0.25, {"__float__": "Infinity"}]}
    found = read_mamba(ConfigFields(negative), FIELDS, "mixer")
    assert (found.rates_as, found.least_time, found.most_time) == ("negative", 0.25, None)


def test_the_elements_of_a_head_may_follow_from_the_width_of_layers() -> None:
    for unstated in ({"dim": None}, {"dim": "auto"}):
        assert read_mamba(ConfigFields(SIZES | unstated), FIELDS, "mixer", inner=30).head_dim == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": 4}, "groups 4 does not divide heads 6"),
        ({"dim": 6}, "6 heads of 6 elements do not add up to 30"),
        ({"time_step_limit": [0.5, 0.1]}, "time_step_limit is .* ascending order"),
        ({"time_step_limit": [0.5]}, "time_step_limit has 1 entries"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read_mamba(ConfigFields(SIZES | changes), FIELDS, "mixer", inner=30)
