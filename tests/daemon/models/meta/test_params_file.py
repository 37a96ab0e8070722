from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.models.meta.params_file import Params, read_params

LLAMA = {
    "dim": 4096,
    "n_layers": 32,
    "n_heads": 32,
    "n_kv_heads": 8,
    "vocab_size": 128256,
    "multiple_of": 1024,
    "ffn_dim_multiplier": 1.3,
    "norm_eps": 1e-05,
    "rope_theta": 500000.0,
}
"""Llama 3 8B."""


def read(directory: Path, **changes: Any) -> Params:
    path = directory / "params.json"
    path.write_text(json.dumps(LLAMA | changes))
    return read_params(path)


@pytest.mark.parametrize(
    ("changes", "width"),
    [
        ({}, 14336),
        ({"multiple_of": 256, "ffn_dim_multiplier": None}, 11008),  # Llama 2 7B
        ({"dim": 8192, "n_heads": 64, "multiple_of": 4096}, 28672),  # Llama 3 70B
        ({"dim": 5120, "n_heads": 40, "multiple_of": 256, "ffn_dim_multiplier": None}, 13824),
        ({"dim": 2048, "ffn_dim_multiplier": 1.5, "multiple_of": 256}, 8192),  # Llama 3.2 1B
        ({"hidden_dim": 14337}, 14337),  # stated by Mistral
    ],
)
def test_the_width_of_the_feed_forward_network_follows(
    tmp_path: Path, changes: dict[str, Any], width: int
) -> None:
    assert read(tmp_path, **changes).feed_forward_width == width


def test_keys_have_a_head_for_each_query_where_nothing_else_is_said(tmp_path: Path) -> None:
    assert read(tmp_path).kv_heads == 8
    assert read(tmp_path, n_kv_heads=None).kv_heads == 32


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dim": None}, "does not have the expected form"),
        ({"n_heads": 0}, "does not have the expected form"),
        ({"norm_eps": "1e-5"}, "norm_eps"),
        ({"n_layers": 10**12}, "n_layers"),
        ({"sliding_window": [4096, 8192]}, "sliding_window"),
        ({"n_kv_heads": 5}, "n_kv_heads 5 does not divide n_heads 32"),
        ({"dim": 4100}, "dim 4100 is not a multiple of n_heads 32"),
    ],
)
def test_what_contradicts_or_is_no_size_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(CheckpointError, match=reason) as caught:
        read(tmp_path, **changes)
    assert caught.value.file == str(tmp_path / "params.json")


def test_a_head_of_its_own_width_needs_not_divide(tmp_path: Path) -> None:
    assert read(tmp_path, dim=4100, head_dim=128).head_dim == 128


@pytest.mark.parametrize(
    "field",
    [
        {"moe": {"num_experts": 8}},
        {"quantization": {"qformat_weight": "fp8_e4m3"}},
        {"yarn": {"factor": 16}},
        {"causal": "no"},
        {"activation": "relu"},
    ],
)
def test_a_field_that_may_change_answers_is_refused_by_name(tmp_path: Path, field: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match=rf"params.json: {next(iter(field))} is"):
        read(tmp_path, **field)


def test_what_says_nothing_new_is_taken(tmp_path: Path) -> None:
    assert read(tmp_path, moe=None, use_biases=False, causal=True, max_batch_size=32) == read(tmp_path)
