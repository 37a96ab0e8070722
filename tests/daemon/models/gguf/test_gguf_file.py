from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.gguf.gguf_file import GgufFile, read_gguf_metadata
from tests.corrupt.untouchable import map_untouchable

MATRIX = np.arange(128, dtype=np.float32).reshape(2, 64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list(["a", "b"])
    writer.add_tensor("f32", MATRIX)
    writer.add_tensor("f16", MATRIX.astype(np.float16))
    for kind in (gguf.GGMLQuantizationType.BF16, gguf.GGMLQuantizationType.Q8_0):
        writer.add_tensor(kind.name.lower(), gguf.quants.quantize(MATRIX, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_views_have_the_stored_values(path: Path) -> None:
    with GgufFile.open(path) as file:
        np.testing.assert_array_equal(file.view("f32"), MATRIX)
        np.testing.assert_array_equal(file.view("f16"), MATRIX.astype(np.float16))
        bits = file.view("bf16")
    assert bits.dtype == np.uint16
    np.testing.assert_array_equal((bits.astype(np.uint32) << 16).view(np.float32), MATRIX)


def test_blocks_come_as_rows_of_bytes(path: Path) -> None:
    with GgufFile.open(path) as file:
        blocks = file.view("q8_0")
    assert (blocks.shape, blocks.dtype) == ((2, 68), np.dtype(np.uint8))
    assert np.abs(gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0) - MATRIX).max() < 0.51


def test_the_metadata_outlive_the_file(path: Path) -> None:
    with GgufFile.open(path) as file:
        metadata = file.metadata
    assert metadata["tokenizer.ggml.tokens"] == ["a", "b"]
    assert dict(read_gguf_metadata(path)) == dict(metadata)


def test_views_are_mapped_and_read_only(path: Path) -> None:
    with GgufFile.open(path) as file:
        view = file.view("f32")
    assert not view.flags.owndata
    assert not view.flags.writeable


def test_opening_touches_no_tensor_data(path: Path) -> None:
    with GgufFile.open(path, mapper=map_untouchable) as file:
        assert file.tensors["q8_0"].shape == (2, 64)
        with pytest.raises(TypeError):
            file.view("f32")


def test_a_file_that_shrinks_while_it_is_in_use_is_refused(path: Path) -> None:
    with GgufFile.open(path) as file:
        os.truncate(path, 100)
        with pytest.raises(CheckpointError, match="shrank from") as caught:
            file.view("f32")
    assert caught.value.tensor == "f32"


@pytest.mark.parametrize("name", ["f32", "bf16", "q8_0"])
def test_what_is_fetched_are_the_bytes_of_the_tensor(
    path: Path, name: str, fetched: list[tuple[int, int]]
) -> None:
    with GgufFile.open(path) as file:
        file.fetch(name)
        stored = file.view(name).tobytes()
    ((begin, num_bytes),) = fetched
    assert path.read_bytes()[begin : begin + num_bytes] == stored
