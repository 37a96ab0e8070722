from __future__ import annotations

from typing import Any

import pytest

from llmd.api import CheckpointError, RopeTable, UnsupportedModelError
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.rope import read_rope, rope_table

LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [2.0, 4.0]}


def table(context_len: int = 100, head_dim: int = 4, **fields: Any) -> RopeTable:
    return rope_table(
        read_rope(ConfigFields({"max_position_embeddings": 100} | fields)), head_dim, context_len
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"rope_theta": 400.0}, {"rope_type": "default", "rope_theta": 400.0}),
        (
            {"rope_theta": 400.0, "rope_scaling": {"type": "linear", "factor": 2.0}},
            {"rope_type": "linear", "factor": 2.0, "rope_theta": 400.0},
        ),
        ({"partial_rotary_factor": 0.5}, {"rope_type": "default", "partial_rotary_factor": 0.5}),
        (
            {"original_max_position_embeddings": 50, "rope_scaling": LONGROPE},
            {**LONGROPE, "rope_type": "longrope", "original_max_position_embeddings": 50},
        ),
    ],
)
def test_old_and_new_spelling_mean_the_same(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert table(**old) == table(rope_parameters=new)


def test_theta_may_stand_beside_the_new_spelling() -> None:
    assert table(rope_theta=400.0, rope_parameters={"rope_type": "default"}) == table(rope_theta=400.0)


def test_scaling_beside_the_new_spelling_keeps_what_it_does_not_say() -> None:
    new = {"rope_type": "default", "rope_theta": 400.0, "partial_rotary_factor": 0.5}
    scaling = {"type": "linear", "factor": 2.0}
    both = table(head_dim=8, rope_parameters=new, rope_scaling=scaling)
    assert both == table(head_dim=8, rope_parameters=new | {"rope_type": "linear", "factor": 2.0})


def test_part_of_a_head_can_be_rotated() -> None:
    assert table(head_dim=8, partial_rotary_factor=0.5).rotary_dim == 4


@pytest.mark.parametrize(
    ("head_dim", "factor"),
    [(15, 1.0), (8, 0.125), (8, 1.25), (6, 0.5)],
    ids=["odd", "none", "more", "odd part"],
)
def test_refuses_to_rotate_what_is_no_even_part_of_a_head(head_dim: int, factor: float) -> None:
    with pytest.raises(CheckpointError, match=f"head_dim {head_dim}.*expected an even number"):
        table(head_dim=head_dim, partial_rotary_factor=factor)


def test_longrope_takes_long_factors_only_for_contexts_beyond_the_trained_length() -> None:
    fields: dict[str, Any] = {
        "original_max_position_embeddings": 50,
        "rope_scaling": LONGROPE,
        "rope_theta": 100.0,
    }
    assert table(50, **fields).inv_freq == pytest.approx((1.0, 0.1))
    assert table(51, **fields).inv_freq == pytest.approx((0.5, 0.025))
    assert table(50, **fields).factor == table(51, **fields).factor > 1


def test_longropes_old_name_is_understood() -> None:
    assert table(rope_scaling={**LONGROPE, "type": "su"}) == table(rope_scaling=LONGROPE)


def test_a_stated_attention_factor_wins() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5}
    assert table(rope_scaling=yarn).factor == 1.5


def test_yarns_attention_factor_follows_mscale() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0}
    assert table(rope_scaling=yarn).factor == 1.0


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ({"type": "linear"}, r"rope_scaling\.factor is missing"),
        ({"type": "linear", "factor": -2}, r"rope_scaling\.factor is -2"),
        ({"type": "dynamic", "factor": "2"}, r"rope_scaling\.factor is '2'"),
        ({**LONGROPE, "short_factor": [1.0]}, "short_factor has 1 entries, expected 2"),
        ({**LONGROPE, "long_factor": [1.0, 0.0]}, "long_factor is"),
        (
            {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0},
            r"low_freq_factor 4\.0 is not below high_freq_factor 4\.0",
        ),
        ([2.0], "rope_scaling is .*expected an object"),
    ],
)
def test_names_what_is_wrong_with_the_scaling(scaling: object, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        table(rope_scaling=scaling)


def test_a_base_of_one_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"rope_theta is 1\.0"):
        table(rope_theta=1.0)


def test_dynamic_scaling_of_a_single_pair_is_refused() -> None:
    with pytest.raises(CheckpointError, match="at least 4 rotated elements"):
        table(head_dim=2, rope_scaling={"type": "dynamic", "factor": 2.0})


def test_longrope_trained_on_one_token_is_refused() -> None:
    with pytest.raises(CheckpointError, match="original_max_position_embeddings is 1"):
        table(rope_scaling=LONGROPE, original_max_position_embeddings=1)


def test_an_unknown_type_is_unsupported_and_named() -> None:
    with pytest.raises(UnsupportedModelError, match=r"rope_scaling\.rope_type is 'mrope'.*llama3"):
        table(rope_scaling={"rope_type": "mrope"})


@pytest.mark.parametrize(
    ("fields", "longest"),
    [
        ({}, 100),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 100),
        ({"rope_scaling": {"type": "dynamic", "factor": 4.0}}, 400),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 50}}, 200),
    ],
)
def test_dynamic_and_yarn_reach_beyond_the_stated_length(fields: dict[str, Any], longest: int) -> None:
    assert read_rope(ConfigFields({"max_position_embeddings": 100} | fields)).max_context_len == longest
