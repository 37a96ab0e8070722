from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.meta.weight_files import find_weights, has_weights

FIRST, SECOND, THIRD = (f"consolidated.{number:02}.safetensors" for number in range(3))


def touch(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).touch()


@pytest.mark.parametrize("name", ["consolidated.safetensors", FIRST])
def test_one_file_is_the_model(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)
    shards, parallel = find_weights(tmp_path)
    assert shards.paths == (tmp_path / name,)
    assert not parallel


def test_numbered_files_are_pieces_in_order(tmp_path: Path) -> None:
    touch(tmp_path, THIRD, SECOND, FIRST)
    shards, parallel = find_weights(tmp_path)
    assert shards.paths == (tmp_path / FIRST, tmp_path / SECOND, tmp_path / THIRD)
    assert shards.main == tmp_path / FIRST
    assert parallel


def test_an_index_names_shards(tmp_path: Path) -> None:
    touch(tmp_path, "consolidated-00001-of-00001.safetensors")
    index = tmp_path / "consolidated.safetensors.index.json"
    index.write_text('{"weight_map": {"norm.weight": "consolidated-00001-of-00001.safetensors"}}')
    shards, parallel = find_weights(tmp_path)
    assert shards.main == index
    assert not parallel


def test_a_missing_piece_is_named(tmp_path: Path) -> None:
    touch(tmp_path, FIRST, THIRD)
    with pytest.raises(CheckpointError, match=rf"{SECOND} is missing, but there is {THIRD}"):
        find_weights(tmp_path)


def test_pickled_weights_are_refused_with_the_conversion(tmp_path: Path) -> None:
    touch(tmp_path, "consolidated.00.pth", "consolidated.01.pth")
    with pytest.raises(CheckpointError, match="pickled weights could run code") as caught:
        find_weights(tmp_path)
    assert caught.value.file == str(tmp_path / "consolidated.00.pth")
    assert "save_file(" in caught.value.hint


def test_a_directory_without_weights_says_what_it_lacks(tmp_path: Path) -> None:
    touch(tmp_path, "consolidated.pt", "model.safetensors")
    with pytest.raises(CheckpointError, match=r"holds neither consolidated.safetensors nor"):
        find_weights(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["consolidated.safetensors", "consolidated.safetensors.index.json", FIRST, "consolidated.00.pth"],
)
def test_weights_are_told_by_their_names(tmp_path: Path, name: str) -> None:
    touch(tmp_path, "model.safetensors", "consolidated.safetensors.bak")
    assert not has_weights(tmp_path)
    touch(tmp_path, name)
    assert has_weights(tmp_path)
