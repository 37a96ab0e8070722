from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.shards import find_shards
from tests.corrupt.small_model import INDEX, SHARDS, SINGLE


def write_index(directory: Path, weight_map: Any, **fields: Any) -> None:
    (directory / INDEX).write_text(json.dumps({"weight_map": weight_map, **fields}))


def touch(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).touch()


def test_a_single_file_is_the_model(tmp_path: Path) -> None:
    touch(tmp_path, SINGLE, "consolidated.safetensors")
    shards = find_shards(tmp_path)
    assert shards.paths == (tmp_path / SINGLE,)
    assert shards.weight_map is None


def test_an_index_names_the_shards(tmp_path: Path) -> None:
    touch(tmp_path, *SHARDS)
    write_index(tmp_path, {"a": SHARDS[1], "b": SHARDS[0], "c": SHARDS[1]}, metadata={"total_size": 12})
    shards = find_shards(tmp_path)
    assert shards.main == tmp_path / INDEX
    assert shards.paths == (tmp_path / SHARDS[1], tmp_path / SHARDS[0])
    assert shards.total_bytes == 12


@pytest.mark.parametrize("metadata", [None, [], {}, {"total_size": "12"}, {"total_size": True}])
def test_an_index_need_not_state_a_size(tmp_path: Path, metadata: Any) -> None:
    touch(tmp_path, SHARDS[0])
    write_index(tmp_path, {"a": SHARDS[0]}, metadata=metadata)
    assert find_shards(tmp_path).total_bytes is None


def test_an_absent_shard_is_named_with_a_tensor(tmp_path: Path) -> None:
    touch(tmp_path, SHARDS[0])
    write_index(tmp_path, {"a": SHARDS[0], "b": SHARDS[1]})
    with pytest.raises(CheckpointError, match=f"names the shard {SHARDS[1]}, which is missing") as caught:
        find_shards(tmp_path)
    assert caught.value.file == str(tmp_path / INDEX)
    assert caught.value.tensor == "b"


@pytest.mark.parametrize("weight_map", [None, [], {}, "model.safetensors"])
def test_an_index_needs_a_weight_map(tmp_path: Path, weight_map: Any) -> None:
    write_index(tmp_path, weight_map)
    with pytest.raises(CheckpointError, match="weight_map is missing, empty or not an object"):
        find_shards(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.safetensors",
        "/etc/passwd",
        "a/b.safetensors",
        "..\\b.safetensors",
        "w.bin",
        ".safetensors",
        "a\0.safetensors",
        "x" * 300 + ".safetensors",
        "",
        None,
        1,
        ["w.safetensors"],
    ],
)
def test_a_shard_lies_beside_its_index(tmp_path: Path, name: Any) -> None:
    write_index(tmp_path, {"a": name})
    with pytest.raises(CheckpointError, match="is not the name of a safetensors file next to the index"):
        find_shards(tmp_path)


def test_shards_without_their_index_are_not_guessed(tmp_path: Path) -> None:
    touch(tmp_path, *SHARDS)
    with pytest.raises(CheckpointError, match="is missing, but there are 2 shards") as caught:
        find_shards(tmp_path)
    assert INDEX in caught.value.hint


def test_one_file_of_another_name_is_pointed_at(tmp_path: Path) -> None:
    touch(tmp_path, "weights.safetensors")
    with pytest.raises(
        CheckpointError, match=r"model.safetensors is missing, but there is weights.safetensors"
    ):
        find_shards(tmp_path)


def test_a_file_of_another_layout_is_not_to_be_renamed(tmp_path: Path) -> None:
    touch(tmp_path, "consolidated.safetensors")
    with pytest.raises(
        CheckpointError, match=r"consolidated.safetensors, which is in another layout"
    ) as caught:
        find_shards(tmp_path)
    assert "params.json" in caught.value.hint


def test_files_of_another_stem_are_found_alike(tmp_path: Path) -> None:
    touch(tmp_path, SINGLE, "consolidated.safetensors")
    assert find_shards(tmp_path, stem="consolidated").paths == (tmp_path / "consolidated.safetensors",)


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("pytorch_model.bin", "convert"),
        ("consolidated.00.pth", "convert"),
        ("m.h5", "use"),
    ],
)
def test_weights_of_another_kind_are_named_with_their_fix(tmp_path: Path, name: str, fix: str) -> None:
    touch(tmp_path, name)
    with pytest.raises(CheckpointError, match="cannot be read") as caught:
        find_shards(tmp_path)
    assert caught.value.file == str(tmp_path / name)
    assert fix in caught.value.hint


def test_a_directory_without_weights_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"holds neither {SINGLE} nor {INDEX}"):
        find_shards(tmp_path)


def test_a_dangling_link_is_left_to_be_reported_by_name(tmp_path: Path) -> None:
    (tmp_path / SINGLE).symlink_to("nowhere")
    assert find_shards(tmp_path).paths == (tmp_path / SINGLE,)


@pytest.mark.parametrize("target", ["nowhere", "x" * 300])
def test_a_shard_that_is_such_a_link_is_too(tmp_path: Path, target: str) -> None:
    (tmp_path / SHARDS[0]).symlink_to(target)
    write_index(tmp_path, {"a": SHARDS[0]})
    assert find_shards(tmp_path).paths == (tmp_path / SHARDS[0],)


def test_a_directory_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be listed: No such file") as caught:
        find_shards(tmp_path / "absent")
    assert caught.value.file == str(tmp_path / "absent")
