"""Configurations of DeepSeek-V4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api import CheckpointError, Compress, Rope, Router, UnsupportedModelError
from llmd.builtin.architectures.deepseek_v4 import plan
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.models.open_model import open_model
from tests.golden.gguf_layout import write_gguf
from tests.golden.models.catalog import tiny_model
from tests.golden.models.compressed import as_published, deepseek_v4


def strides(config: dict[str, Any]) -> list[int]:
    """Return the tokens for each vector that attention of a layer sees; 0: it sees none."""
    mixers = [part.ops for part in plan(config, None).parts if part.kind == "mixer"]
    return [max((op.stride for op in ops if isinstance(op, Compress)), default=0) for ops in mixers]


def test_without_types_layers_alternate_as_in_the_larger_model() -> None:
    assert strides(as_published(num_hidden_layers=6, num_hash_layers=2)) == [128, 128, 128, 4, 128, 4]


def test_published_checkpoints_state_the_tokens_of_each_vector() -> None:
    assert strides(dict(tiny_model("deepseek-v4-published").config)) == [0, 0, 4, 128]


def test_a_table_has_the_experts_of_the_first_layers() -> None:
    parts = plan(as_published(num_hash_layers=3, num_hidden_layers=5), None).parts
    routers = [op for part in parts for op in part.ops if isinstance(op, Router)]
    assert [op.given is not None for op in routers] == [True] * 3 + [False] * 2
    assert [op.correction is None for op in routers] == [True] * 3 + [False] * 2
    assert {op.score for op in routers} == {"sqrt_softplus"}


def test_stretched_angles_are_not_scaled_unless_the_configuration_says_so() -> None:
    case = tiny_model("deepseek-v4-published")
    scaling = {**case.config["rope_scaling"], "attention_factor": 1.5}
    tables = [
        {op.table.factor for part in plan(config, 128).parts for op in part.ops if isinstance(op, Rope)}
        for config in (dict(case.config), {**case.config, "rope_scaling": scaling})
    ]
    assert tables == [{1.0}, {1.0, 1.5}]


def test_a_draft_head_is_named() -> None:
    left_out = plan(deepseek_v4(), None).left_out[0]
    assert (left_out.is_draft, left_out.marks) == (True, ("mtp.", "blk.4."))


def test_the_routing_of_images_is_left_out(tmp_path: Path) -> None:
    case, name = tiny_model("deepseek-v4-published"), "blk.3.exp_probs_b_vl.bias"
    path = write_gguf(
        case, tmp_path / "m.gguf", edit=lambda tensors: tensors.update({name: np.zeros(4, np.float32)})
    )
    model = open_model(path, {one: found for found in llmd_architectures() for one in found.names})
    with model.checkpoint:
        assert model.notices == ("1 tensors for vision are left out: llmd runs only the text model",)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"o_groups": 3}, "4 heads cannot be in o_groups 3"),
        ({"qk_rope_head_dim": 28}, "28 elements cannot be rotated in heads of 24"),
        ({"layer_types": None, "compress_ratios": [4, 4]}, "compress_ratios has 2 entries for 4 layers"),
        ({"num_experts_per_tok": 9}, "num_experts_per_tok is 9, but there are 8 experts"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        plan(deepseek_v4(**fields), None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layer_types": None, "compress_ratios": [4, 8, 4, 4]}, "compress_ratios is 8"),
        ({"compress_rates": {"compressed_sparse_attention": 3}}, "compressed_sparse_attention is 3"),
        ({"scoring_func": "tanh"}, "scoring_func is 'tanh'"),
        ({"layer_types": ["full_attention"] * 4}, "layer_types is 'full_attention'"),
    ],
)
def test_what_llmd_does_not_know_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        plan(deepseek_v4(**fields), None)
