from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.deepseek4 import deepseek4_fields, deepseek4_keys, deepseek4_shapes
from llmd.models.gguf.tensor_names import as_stored
from tests.daemon.models.gguf.test_config_keys import plan
from tests.daemon.models.gguf.test_families import fields
from tests.golden.models.catalog import tiny_model

NAME = "deepseek-v4-some-experts"
WINDOWED, CHOOSING = "sliding_attention", "compressed_sparse_attention"
UNSTATED: dict[str, Any] = {"deepseek4.swiglu_clamp_shexp": None}


def read(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    return deepseek4_fields(
        fields(tmp_path, NAME, {f"deepseek4.{key}": value for key, value in changes.items()})
    )


def test_fields_are_those_of_the_published_configuration(tmp_path: Path) -> None:
    found = read(tmp_path)
    config = tiny_model(NAME).config
    assert found == {name: config[name] for name in found}
    assert found["compress_ratios"] == [4, 0, 128, 4]


def test_blocks_after_the_layers_are_draft_heads(tmp_path: Path) -> None:
    found = read(tmp_path, block_count=5, nextn_predict_layers=1)
    assert found["num_hidden_layers"] == 4


def test_indexers_of_published_models_are_taken_where_none_is_stated(tmp_path: Path) -> None:
    found = read(tmp_path, **{"attention.indexer.top_k": None})
    assert "index_topk" not in found
    assert found["index_n_heads"] == 16


@pytest.mark.parametrize(("number", "name"), [(4, "sqrtsoftplus"), (1, "softmax"), (2, "sigmoid")])
def test_numbers_stand_for_kinds_of_scores(number: int, name: str, tmp_path: Path) -> None:
    assert read(tmp_path, expert_gating_func=number)["scoring_func"] == name


def test_other_scores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"expert_gating_func is 3.*4 sqrtsoftplus"):
        read(tmp_path, expert_gating_func=3)


def test_all_gates_have_one_limit(tmp_path: Path) -> None:
    changes = {"deepseek4.swiglu_clamp_exp": 7.3}
    found = deepseek4_fields(fields(tmp_path, NAME, UNSTATED | changes))
    assert found["swiglu_limit"] == 7.3
    listed = {"deepseek4.swiglu_clamp_exp": [7.3] * 4}
    assert deepseek4_fields(fields(tmp_path, NAME, UNSTATED | listed))["swiglu_limit"] == 7.3


@pytest.mark.parametrize("limits", [[1.0, 1.0, 2.0, 1.0], [0.0, 1.0, 1.0, 1.0], [2.0] * 4, None])
def test_other_limits_are_refused(limits: list[float] | None, tmp_path: Path) -> None:
    if limits is None:
        changes = UNSTATED | {"deepseek4.swiglu_clamp_exp": None}
    else:
        changes = {"deepseek4.swiglu_clamp_exp": limits}
    with pytest.raises(UnsupportedModelError, match=r"swiglu_clamp_exp .* one limit above 0"):
        deepseek4_fields(fields(tmp_path, NAME, changes))


def test_keys_state_sizes_and_how_layers_compress() -> None:
    keys = deepseek4_keys(plan(NAME))
    assert keys["attention.q_lora_rank"] == 32
    assert (keys["attention.output_group_count"], keys["attention.output_lora_rank"]) == (2, 24)
    assert np.array_equal(keys["attention.compress_ratios"], [4, 0, 128, 4])
    assert keys["hash_layer_count"] == 2
    assert np.array_equal(keys["swiglu_clamp_exp"], [1.0] * 4)
    assert np.array_equal(keys["swiglu_clamp_shexp"], [1.0] * 4)
    index = [keys[f"attention.indexer.{key}"] for key in ("head_count", "key_length", "top_k")]
    assert index == [16, 24, 6]
    streams = [keys[f"hyper_connection.{key}"] for key in ("count", "sinkhorn_iterations", "epsilon")]
    assert streams == [4, 20, 1e-6]
    assert keys["embedding_length_out"] == 4 * 64
    assert deepseek4_keys(plan("deepseek-v3")) == {}


def test_models_whose_layers_choose_nothing_state_no_indexer() -> None:
    keys = deepseek4_keys(plan(NAME, compress_ratios=[0, 128, 0, 0]))
    assert not [key for key in keys if "indexer" in key]


@pytest.mark.parametrize(
    ("kind", "stride", "message"),
    [
        (CHOOSING, 8, "layer 0 has a vector for 8 tokens, .* choose among vectors have one for 4"),
        ("heavily_compressed_attention", 4, "layer 2 has a vector for 4 tokens, .* see all vectors .* 128"),
    ],
)
def test_other_strides_are_refused(kind: str, stride: int, message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        deepseek4_keys(plan(NAME, compress_rates={kind: stride}))


def test_tables_of_experts_are_in_the_first_layers() -> None:
    with pytest.raises(UnsupportedModelError, match="are not the first"):
        deepseek4_keys(plan(NAME, mlp_layer_types=["hash_moe", "moe", "hash_moe", "moe"]))
    assert deepseek4_keys(plan(NAME, num_hash_layers=0))["hash_layer_count"] == 0


def test_some_tensors_have_other_axes_in_files() -> None:
    shapes = deepseek4_shapes(as_stored(plan(NAME), "deepseek4"))
    assert shapes["blk.1.attn_output_a.weight"] == (2 * 24, 2 * 32)
    assert shapes["blk.0.attn_compressor_ape.weight"] == (4, 2 * 32)
    assert shapes["blk.0.indexer_compressor_ape.weight"] == (4, 2 * 24)
    assert shapes["blk.2.attn_compressor_ape.weight"] == (128, 32)
    assert deepseek4_shapes(plan("deepseek-v3")) == {}
