"""Written headers are read the same by our reader and by the ``gguf`` package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from llmd.models.gguf.gguf_file import GgufFile
from llmd.models.gguf.header_writer import gguf_layout
from llmd.models.new_weights import NewTensor, write_header

KEYS: dict[str, Any] = {
    "general.architecture": "llama",
    "text": "Größe\n\0 你好",
    "empty": "",
    "count": 7,
    "largest": (1 << 32) - 1,
    "long": 1 << 40,
    "negative": -3,
    "real": 1e-05,
    "true": True,
    "false": False,
    "texts": ["a", "", "ü"],
    "no texts": [],
    "kinds": np.array([1, -2, 3], np.int32),
    "scores": np.array([0.5, -1e9], np.float32),
    "flags": np.array([True, False]),
    "bytes": np.frombuffer(b"\0\xff", np.uint8),
}
TENSORS = (
    NewTensor("odd", "f16", (3, 5)),
    NewTensor("blocks", "q4_1", (2, 64)),
    NewTensor("last", "f32", (1,)),
)


def write(path: Path) -> Path:
    write_header(path, gguf_layout(KEYS, TENSORS))
    return path


def test_keys_are_read_as_they_were_given(tmp_path: Path) -> None:
    with GgufFile.open(write(tmp_path / "m.gguf")) as file:
        assert list(file.metadata) == list(KEYS)
        for key, value in KEYS.items():
            read = file.metadata[key]
            if isinstance(value, np.ndarray):
                assert isinstance(read, np.ndarray)
                assert read.dtype == value.dtype
            assert np.array_equal(read, value), key


def test_the_package_gguf_reads_the_same(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(write(tmp_path / "m.gguf"))
    for key, value in KEYS.items():
        given = value.tolist() if isinstance(value, np.ndarray) else value
        assert reader.fields[key].contents() == given or key == "real", key
    assert reader.fields["count"].types == [gguf.GGUFValueType.UINT32]
    assert reader.fields["real"].types == [gguf.GGUFValueType.FLOAT32]
    found = [(t.name, t.tensor_type.name, tuple(reversed(t.shape.tolist()))) for t in reader.tensors]
    assert found == [("odd", "F16", (3, 5)), ("blocks", "Q4_1", (2, 64)), ("last", "F32", (1,))]


def test_each_tensor_begins_at_a_multiple_of_the_alignment_where_it_is_said_to(tmp_path: Path) -> None:
    layout = gguf_layout(KEYS, TENSORS)
    with GgufFile.open(write(tmp_path / "m.gguf")) as file:
        assert tuple(tensor.begin for tensor in file.tensors.values()) == layout.begins
    assert all(begin % 32 == 0 for begin in layout.begins)
    assert layout.num_bytes % 32 == 0
