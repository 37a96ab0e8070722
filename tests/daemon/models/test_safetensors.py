from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.safetensors import SafetensorsFile
from tests.corrupt.small_model import write_raw
from tests.corrupt.untouchable import map_untouchable
from tests.golden.checkpoint import Tensors, write_safetensors


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tensors: Tensors = {
        "bf16": np.array([0x3F80, 0xC000], np.uint16),
        "f32": np.arange(6, dtype=np.float32).reshape(2, 3),
        "f16": np.array([[1.5], [-2.0]], np.float16),
    }
    write_safetensors(tmp_path / "w.safetensors", tensors, {})
    return tmp_path / "w.safetensors"


def test_views_have_the_stored_values(path: Path) -> None:
    with SafetensorsFile.open(path) as file:
        np.testing.assert_array_equal(file.view("f32"), np.arange(6, dtype=np.float32).reshape(2, 3))
        np.testing.assert_array_equal(file.view("f16"), np.array([[1.5], [-2.0]], np.float16))


def test_bf16_comes_as_its_bits(path: Path) -> None:
    with SafetensorsFile.open(path) as file:
        bits = file.view("bf16")
    assert bits.dtype == np.uint16
    assert bits.tolist() == [0x3F80, 0xC000]


def test_a_file_that_cannot_be_mapped_is_named(path: Path) -> None:
    def out_of_memory(file: BinaryIO) -> NoReturn:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    with pytest.raises(CheckpointError, match="cannot be mapped: Cannot allocate memory") as caught:
        SafetensorsFile.open(path, mapper=out_of_memory)
    assert caught.value.file == str(path)


def test_views_are_mapped_and_read_only(path: Path) -> None:
    with SafetensorsFile.open(path) as file:
        view = file.view("f32")
    assert not view.flags.owndata
    assert not view.flags.writeable
    with path.open("r+b") as written:
        written.seek(-28, os.SEEK_END)
        written.write(np.float32(7).tobytes())
    assert view[0, 0] == 7


def test_data_behind_a_header_of_odd_length_can_be_viewed(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    path = write_raw(tmp_path / "w.safetensors", header.ljust(57), np.array([1, 2], np.float32).tobytes())
    with SafetensorsFile.open(path) as file:
        view = file.view("a")
    assert not view.flags.aligned
    assert view.tolist() == [1, 2]


def test_an_empty_tensor_at_the_end_of_the_file_can_be_viewed(tmp_path: Path) -> None:
    header = {"a": {"dtype": "F32", "shape": [0, 4], "data_offsets": [0, 0]}}
    with SafetensorsFile.open(write_raw(tmp_path / "w.safetensors", header)) as file:
        assert file.view("a").shape == (0, 4)


def test_opening_touches_no_tensor_data(path: Path) -> None:
    with SafetensorsFile.open(path, mapper=map_untouchable) as file:
        assert file.header.entries["f32"].shape == (2, 3)
        with pytest.raises(TypeError):
            file.view("f32")


def test_a_damaged_header_is_found_before_the_file_is_mapped(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)

    def mapper(file: object) -> Any:
        raise AssertionError(file)

    with pytest.raises(CheckpointError, match="truncated"):
        SafetensorsFile.open(path, mapper=mapper)


def test_a_file_that_shrank_is_noticed_before_it_is_touched(path: Path) -> None:
    with SafetensorsFile.open(path) as file:
        os.truncate(path, 40)
        with pytest.raises(CheckpointError, match=r"shrank from .* to 40 bytes") as caught:
            file.view("f32")
    assert (caught.value.file, caught.value.tensor) == (str(path), "f32")


def test_views_outlive_the_file(path: Path) -> None:
    with SafetensorsFile.open(path) as file:
        view = file.view("f32")
    assert view.sum() == 15


@pytest.mark.parametrize("name", ["bf16", "f32", "f16"])
def test_what_is_fetched_are_the_bytes_of_the_tensor(
    path: Path, name: str, fetched: list[tuple[int, int]]
) -> None:
    with SafetensorsFile.open(path) as file:
        file.fetch(name)
        stored = file.view(name).tobytes()
    ((begin, num_bytes),) = fetched
    assert path.read_bytes()[begin : begin + num_bytes] == stored
