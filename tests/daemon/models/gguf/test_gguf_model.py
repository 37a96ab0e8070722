from __future__ import annotations

import shutil
from pathlib import Path
from struct import pack

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.gguf.gguf_model import GgufModel
from llmd.models.gguf.model_files import model_files
from tests.corrupt.gguf_bytes import U32, gguf, key
from tests.golden.gguf_layout import gguf_tensors, write_gguf
from tests.golden.models.catalog import tiny_model

CASE = tiny_model("llama2-mha")


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, ...]:
    """Three parts; none has all tensors."""
    paths = model_files(write_gguf(CASE, tmp_path / "m.gguf", num_parts=3))
    assert len(paths) == 3
    return paths


def test_the_parts_of_a_model_are_one(parts: tuple[Path, ...]) -> None:
    expected = gguf_tensors(CASE)
    with GgufModel.open(parts) as model:
        assert model.path == parts[0]
        assert model.metadata["general.architecture"] == "llama"
        assert set(model.owners) == set(expected)
        for name, tensor in expected.items():
            assert model.view(name).tolist() == tensor.tolist()


def test_a_tensor_that_is_missing_is_named(parts: tuple[Path, ...]) -> None:
    with GgufModel.open(parts) as model, pytest.raises(CheckpointError, match="x: the tensor is missing"):
        model.tensor("x")


def test_a_part_in_the_place_of_another_is_refused(parts: tuple[Path, ...]) -> None:
    shutil.copy(parts[2], parts[1])
    with pytest.raises(CheckpointError, match="part 3 of 3; by its name it is part 2 of 3"):
        GgufModel.open(parts)


def test_a_part_is_no_model_by_itself(parts: tuple[Path, ...]) -> None:
    with pytest.raises(CheckpointError, match="part 1 of 3; by its name it is part 1 of 1"):
        GgufModel.open(parts[:1])


def test_a_whole_model_is_no_part(parts: tuple[Path, ...], tmp_path: Path) -> None:
    shutil.copy(write_gguf(CASE, tmp_path / "whole.gguf"), parts[0])
    with pytest.raises(CheckpointError, match="part 1 of 1; by its name it is part 1 of 3"):
        GgufModel.open(parts)


def test_a_tensor_in_two_parts_is_refused(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf")]
    for number, path in enumerate(paths):
        stated = {"split.no": number, "split.count": 2, "split.tensors.count": 1}
        path.write_bytes(gguf([key(name, U32, pack("<I", value)) for name, value in stated.items()]))
    with pytest.raises(CheckpointError, match=r"output_norm.weight: is also in m-00001-of-00002.gguf"):
        GgufModel.open(paths)


def test_parts_of_different_models_are_refused(parts: tuple[Path, ...], tmp_path: Path) -> None:
    other = model_files(write_gguf(tiny_model("llama-f16"), tmp_path / "other" / "m.gguf", num_parts=3))
    shutil.copy(other[1], parts[1])
    with pytest.raises(CheckpointError, match=r"is also in|the parts hold") as caught:
        GgufModel.open(parts)
    assert "different models" in caught.value.hint
