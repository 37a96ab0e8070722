from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import pytest

from llmd.api import Attention, HeadLinear, Linear, Norm, Op, Rope
from llmd.builtin.architectures.deepseek_v3 import plan
from tests.golden.models.catalog import tiny_model
from tests.golden.models.latents import V3_ROPE

CONFIG = tiny_model("deepseek-v3").config
HALVES = tiny_model("deepseek-v3-halves").config
Kind = TypeVar("Kind", bound=Op)


def mixer(config: Mapping[str, Any]) -> tuple[Op, ...]:
    return plan(config, None).parts[1].ops


def of_kind(config: Mapping[str, Any], kind: type[Kind]) -> list[Kind]:
    return [op for op in mixer(config) if isinstance(op, kind)]


def test_a_token_keeps_its_latent_vector_and_the_rotated_part_of_its_key() -> None:
    (group,) = plan(CONFIG, None).groups
    assert (group.kind, group.kv_heads, group.key_dim, group.value_dim) == ("latent", 1, 64 + 16, 64)
    (attention,) = of_kind(CONFIG, Attention)
    assert (attention.k, attention.v) == ("k", "k")
    assert (attention.heads, attention.kv_heads, attention.value_dim) == (4, 1, 64)


def test_keys_and_values_of_heads_are_parts_of_one_tensor() -> None:
    keys, values = (op.weight for op in of_kind(CONFIG, HeadLinear))
    assert keys.name == values.name == "model.layers.0.self_attn.kv_b_proj.weight"
    assert keys.shape == values.shape == (4, 64, 64)
    assert (keys.is_transposed, keys.columns, keys.view_shape) == (True, (0, 32), (4, 64, 32))
    assert (values.rows, values.view_shape) == ((32, 64), (4, 32, 64))


def test_keys_and_values_of_heads_may_be_tensors_of_their_own() -> None:
    keys, values = (op.weight for op in of_kind({**CONFIG, "split_kv_b": True}, HeadLinear))
    assert (keys.name, keys.shape) == ("model.layers.0.self_attn.k_b_proj.weight", (4, 64, 32))
    assert (values.name, values.shape) == ("model.layers.0.self_attn.v_b_proj.weight", (4, 32, 64))


def test_queries_are_made_from_a_vector_of_low_rank_or_from_the_hidden_state() -> None:
    low, (q, q_rope) = (op.weights for op in of_kind(CONFIG, Linear)[:2])
    assert [ref.name.split(".")[-2] for ref in low] == [
        "q_a_proj",
        "kv_a_proj_with_mqa",
        "kv_a_proj_with_mqa",
    ]
    assert (q.shape, q.rows, q.period) == ((4 * 48, 32), (0, 32), 48)
    assert q_rope.rows == (32, 48)
    whole = of_kind({**CONFIG, "q_lora_rank": None}, Linear)[0]
    assert whole.outs == ("q", "q_rope", "latent", "k_rope")
    assert whole.weights[0].name.endswith("self_attn.q_proj.weight")


def test_biases_are_those_of_the_parts() -> None:
    biased = of_kind({**CONFIG, "attention_bias": True}, Linear)
    assert [None if bias is None else bias.rows for bias in biased[0].biases] == [None, (0, 64), (64, 80)]
    assert biased[0].biases[0] is not None
    assert biased[1].biases == (None, None)
    assert biased[2].biases[0] is not None


def test_norms_of_latent_vectors_have_an_epsilon_of_their_own() -> None:
    assert [norm.eps for norm in of_kind(CONFIG, Norm)] == [1e-3, 1e-6, 1e-6]


def test_pairs_are_neighbours_unless_the_configuration_says_otherwise() -> None:
    assert {rope.interleaved for rope in of_kind(CONFIG, Rope)} == {True}
    assert {rope.interleaved for rope in of_kind(HALVES, Rope)} == {False}
    assert [(rope.heads, rope.head_dim) for rope in of_kind(CONFIG, Rope)] == [(4, 16), (1, 16)]


@pytest.mark.parametrize(
    ("scaling", "above"),
    [
        (V3_ROPE, (0.1 * 0.8 * math.log(4) + 1) ** 2),
        (V3_ROPE | {"mscale_all_dim": None}, 1.0),
        (None, 1.0),
    ],
)
def test_a_stretched_context_raises_scores(scaling: Mapping[str, Any] | None, above: float) -> None:
    (attention,) = of_kind({**CONFIG, "rope_scaling": scaling}, Attention)
    assert attention.scale == pytest.approx(48**-0.5 * above)
