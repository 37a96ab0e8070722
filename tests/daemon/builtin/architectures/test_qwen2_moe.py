from __future__ import annotations

import pytest

from llmd.api import Experts, Gate, Linear, Router
from llmd.api.errors import CheckpointError
from llmd.builtin.architectures.config_fields import ConfigFields
from llmd.builtin.architectures.qwen2_moe import plan, qwen_mixtures
from tests.golden.models.catalog import tiny_model

CONFIG = tiny_model("qwen2-moe-every-other-layer").config
FIELDS = {"num_experts": 4, "moe_intermediate_size": 8, "num_experts_per_tok": 2}


def test_every_second_layer_has_experts_and_a_gated_one_for_all_rows() -> None:
    parts = [part for part in plan(CONFIG, None).parts if part.kind == "ffn"]
    kinds = [{type(op) for op in part.ops} for part in parts]
    assert [kind >= {Router, Experts, Gate} for kind in kinds] == [False, True, False]


def test_queries_keys_and_values_have_biases() -> None:
    (qkv, out) = (op for op in plan(CONFIG, None).parts[1].ops if isinstance(op, Linear))
    assert all(qkv.biases)
    assert out.biases == (None,)


@pytest.mark.parametrize(
    ("fields", "sparse"),
    [
        ({}, [True] * 4),
        ({"decoder_sparse_step": 3}, [False, False, True, False]),
        ({"mlp_only_layers": [0, 3]}, [False, True, True, False]),
    ],
)
def test_some_layers_have_no_experts(fields: dict[str, object], sparse: list[bool]) -> None:
    mixtures = qwen_mixtures(ConfigFields(FIELDS | fields), 4)
    assert [mixture is not None for mixture in mixtures] == sparse


def test_weights_are_normalized_only_if_the_configuration_says_so() -> None:
    for fields, normalized in (({}, False), ({"norm_topk_prob": True}, True)):
        (mixture,) = qwen_mixtures(ConfigFields(FIELDS | fields), 1)
        assert mixture is not None
        assert mixture.normalized is normalized


def test_layers_without_experts_must_exist() -> None:
    with pytest.raises(
        CheckpointError, match=r"mlp_only_layers is \[4\], expected a list of integers in 0..3"
    ):
        qwen_mixtures(ConfigFields(FIELDS | {"mlp_only_layers": [4]}), 4)
