from __future__ import annotations

from pathlib import Path
from struct import pack

import gguf
import numpy as np
import pytest

from llmd.api.errors import CheckpointError
from llmd.models.gguf.header_reader import HeaderReader
from llmd.models.gguf.metadata import Metadata, read_metadata
from tests.corrupt.gguf_bytes import ARRAY, BOOL, STRING, U32, key, listed, text


def parse(tmp_path: Path, *keys: bytes) -> Metadata:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"".join(keys))
    with path.open("rb") as file:
        return read_metadata(HeaderReader(file, name="m.gguf"), len(keys))


SCALARS = {
    gguf.GGUFValueType.UINT8: 255,
    gguf.GGUFValueType.INT8: -128,
    gguf.GGUFValueType.UINT16: 65535,
    gguf.GGUFValueType.INT16: -32768,
    gguf.GGUFValueType.UINT32: 2**32 - 1,
    gguf.GGUFValueType.INT32: -(2**31),
    gguf.GGUFValueType.FLOAT32: 0.5,
    gguf.GGUFValueType.BOOL: True,
    gguf.GGUFValueType.STRING: "tökens",
    gguf.GGUFValueType.UINT64: 2**64 - 1,
    gguf.GGUFValueType.INT64: -(2**63),
    gguf.GGUFValueType.FLOAT64: 0.1,
}


@pytest.mark.parametrize(("kind", "value"), SCALARS.items(), ids=str)
def test_values_of_every_type_are_read(tmp_path: Path, kind: gguf.GGUFValueType, value: float | str) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_key_value("one", value, kind)
    writer.add_array("many", [value, value])
    written = writer.kv_data[0]["many"]
    written.sub_type = kind
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with path.open("rb") as file:
        reader = HeaderReader(file, name="m.gguf")
        reader.take(24)
        metadata = read_metadata(reader, 3)
    assert metadata["one"] == value
    assert type(metadata["one"]) is type(value)
    assert list(metadata["many"]) == [value, value]  # type: ignore[arg-type]


def test_is_a_mapping_in_the_order_of_the_file(tmp_path: Path) -> None:
    metadata = parse(tmp_path, key("b", U32, pack("<I", 1)), key("a", U32, pack("<I", 2)))
    assert dict(metadata) == {"b": 1, "a": 2}
    assert metadata.get("c") is None
    assert len(metadata) == 2


def test_lists_of_numbers_are_read_only_arrays(tmp_path: Path) -> None:
    values = parse(tmp_path, listed("a", U32, [pack("<I", 7)] * 3))["a"]
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.uint32
    assert not values.flags.writeable


def test_lists_may_be_empty(tmp_path: Path) -> None:
    metadata = parse(tmp_path, listed("a", STRING, []), listed("b", U32, []))
    assert metadata["a"] == []
    assert len(metadata["b"]) == 0  # type: ignore[arg-type]


def test_a_float32_is_the_decimal_that_was_meant(tmp_path: Path) -> None:
    metadata = parse(tmp_path, key("a", 6, pack("<f", 1e-5)), listed("b", 6, [pack("<f", 0.1)]))
    assert metadata["a"] == 1e-5
    assert metadata["b"].tolist() == [float(np.float32(0.1))]  # type: ignore[union-attr]


def test_text_is_decoded_when_it_is_asked_for(tmp_path: Path) -> None:
    metadata = parse(tmp_path, key("good", STRING, text("x")), listed("bad", STRING, [text(b"a\xff")]))
    assert metadata["good"] == "x"
    with pytest.raises(CheckpointError, match=r"bad: the text .* is not UTF-8"):
        metadata["bad"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (key("", U32, bytes(4)), "a key of 0 bytes"),
        (text("x" * 65536), "a key of 65536 bytes"),
        (key(b"\xff", U32, bytes(4)), "not UTF-8"),
        (key("\x1b[2J", U32, bytes(4)), "cannot be a key"),
        (key("a", 13, bytes(4)), "a has a value of the unknown type 13"),
        (listed("a", 13, [bytes(4)]), "a has a value of the unknown type 13"),
        (listed("a", ARRAY, [pack("<IQ", U32, 0)]), "a is a list of lists"),
        (key("a", BOOL, b"\2"), "a is neither true nor false"),
        (listed("a", BOOL, [b"\0", b"\2"]), "a is neither true nor false"),
        (listed("a", U32, [], 2**60), "truncated"),
        (listed("a", STRING, [], 2**60), "truncated"),
        (listed("a", STRING, [text("x")], 2), "truncated"),
    ],
)
def test_damage_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    with pytest.raises(CheckpointError, match=complaint) as caught:
        parse(tmp_path, content)
    assert caught.value.hint


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the key a occurs twice"):
        parse(tmp_path, key("a", U32, bytes(4)), key("a", U32, bytes(4)))
