from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.checkpoint import Checkpoint
from llmd.models.shards import find_shards
from tests.corrupt import small_model
from tests.corrupt.small_model import INDEX, SHARDS, SINGLE
from tests.corrupt.untouchable import map_untouchable
from tests.golden.checkpoint import write_safetensors


def edit_index(directory: Path, **fields: Any) -> None:
    index = json.loads((directory / INDEX).read_text())
    (directory / INDEX).write_text(json.dumps(index | fields))


@pytest.fixture
def sharded(model_directory: Path) -> Path:
    small_model.write_sharded(model_directory)
    return model_directory


def test_lists_the_tensors_of_a_single_file(model_directory: Path) -> None:
    with Checkpoint.open(find_shards(model_directory)) as checkpoint:
        assert {name: tensor.shape for name, tensor in checkpoint.tensors.items()} == small_model.shapes()
        norm = checkpoint.tensors["model.norm.weight"]
        assert (norm.dtype, norm.format, norm.size_bytes) == ("F32", "f32", 64)
        assert norm.file == checkpoint.file == model_directory / SINGLE
        assert checkpoint.notices == ()


def test_counts_parameters_and_bytes(model_directory: Path) -> None:
    with Checkpoint.open(find_shards(model_directory)) as checkpoint:
        assert checkpoint.num_parameters == sum(a.size for a in small_model.tensors().values())
        assert checkpoint.size_bytes == 4 * checkpoint.num_parameters


def test_views_the_tensors_of_every_shard(sharded: Path) -> None:
    with Checkpoint.open(find_shards(sharded)) as checkpoint:
        assert checkpoint.file == sharded / INDEX
        assert {tensor.file.name for tensor in checkpoint.tensors.values()} == set(SHARDS)
        for name, array in small_model.tensors().items():
            np.testing.assert_array_equal(checkpoint.view(name), array)


def test_a_dtype_that_no_weight_has_is_listed_without_a_format(tmp_path: Path) -> None:
    write_safetensors(tmp_path / SINGLE, {"ids": np.arange(3, dtype=np.int32)}, {})
    with Checkpoint.open(find_shards(tmp_path)) as checkpoint:
        tensor = checkpoint.tensors["ids"]
    assert (tensor.dtype, tensor.format) == ("I32", None)


def test_opening_touches_no_tensor_data(sharded: Path) -> None:
    with (
        Checkpoint.open(find_shards(sharded), mapper=map_untouchable) as checkpoint,
        pytest.raises(TypeError),
    ):
        checkpoint.view("model.norm.weight")


def test_a_tensor_that_is_not_there_is_named(model_directory: Path) -> None:
    with (
        Checkpoint.open(find_shards(model_directory)) as checkpoint,
        pytest.raises(CheckpointError, match="no such tensor"),
    ):
        checkpoint.view("absent")


def test_a_tensor_in_two_shards_is_refused(sharded: Path) -> None:
    content = small_model.tensors()
    write_safetensors(sharded / SHARDS[1], content, {})
    with pytest.raises(CheckpointError, match=f"is also in {SHARDS[0]}") as caught:
        Checkpoint.open(find_shards(sharded))
    assert caught.value.file == str(sharded / SHARDS[1])
    assert caught.value.tensor == "model.embed_tokens.weight"


def test_an_index_that_sends_to_the_wrong_shard_is_refused(sharded: Path) -> None:
    weight_map = json.loads((sharded / INDEX).read_text())["weight_map"]
    edit_index(sharded, weight_map=weight_map | {"model.embed_tokens.weight": SHARDS[1]})
    with pytest.raises(CheckpointError, match=f"the index says that {SHARDS[1]} holds it") as caught:
        Checkpoint.open(find_shards(sharded))
    assert caught.value.tensor == "model.embed_tokens.weight"


def test_a_tensor_that_the_index_leaves_out_is_noticed(sharded: Path) -> None:
    weight_map = json.loads((sharded / INDEX).read_text())["weight_map"]
    del weight_map["lm_head.weight"]
    edit_index(sharded, weight_map=weight_map, metadata={})
    with Checkpoint.open(find_shards(sharded)) as checkpoint:
        assert "lm_head.weight" not in checkpoint.tensors
        assert len(checkpoint.notices) == 1
        assert "lm_head.weight" in checkpoint.notices[0]


def test_a_wrong_total_size_is_only_noticed(sharded: Path) -> None:
    edit_index(sharded, metadata={"total_size": 7})
    with Checkpoint.open(find_shards(sharded)) as checkpoint:
        assert checkpoint.notices == (
            f"{INDEX} states 7 bytes of tensors, the shards hold {checkpoint.size_bytes}",
        )


def test_a_damaged_shard_is_named(sharded: Path) -> None:
    path = sharded / SHARDS[1]
    path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(CheckpointError, match="1 bytes follow") as caught:
        Checkpoint.open(find_shards(sharded))
    assert caught.value.file == str(path)
