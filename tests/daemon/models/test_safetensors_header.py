from __future__ import annotations

import json
from typing import Any

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.safetensors_header import MAX_HEADER_BYTES, Header, header_length, parse_header


def entry(dtype: str = "F32", shape: Any = (2, 3), offsets: Any = (0, 24)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def parse(header: dict[str, Any] | bytes, data_bytes: int = 24) -> Header:
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    return parse_header(content, 8 + len(content) + data_bytes, file="w.safetensors")


def test_gives_tensors_in_the_order_of_their_data() -> None:
    header = parse({"b": entry(offsets=(8, 32)), "a": entry("F16", (4,), (0, 8))}, 32)
    assert list(header.entries) == ["a", "b"]
    assert header.entries["b"].shape == (2, 3)
    assert (header.entries["b"].begin, header.entries["b"].end) == (8, 32)


def test_data_starts_behind_length_and_header() -> None:
    content = json.dumps({"a": entry()}).encode() + b"   "
    assert parse(content).data_start == 8 + len(content)


def test_gives_the_metadata() -> None:
    header = parse({"__metadata__": {"format": "pt"}, "a": entry()})
    assert header.metadata == {"format": "pt"}
    assert list(header.entries) == ["a"]


def test_empty_and_scalar_tensors_are_tensors() -> None:
    header = parse(
        {"empty": entry(shape=(0, 5), offsets=(0, 0)), "scalar": entry(shape=(), offsets=(0, 4))}, 4
    )
    assert header.entries["empty"].shape == (0, 5)
    assert header.entries["scalar"].shape == ()


@pytest.mark.parametrize(
    "dtype", ["F64", "I64", "I32", "I16", "I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "BF16"]
)
def test_knows_dtypes_that_no_weight_has(dtype: str) -> None:
    item_bytes = {"4": 8, "2": 4, "6": 2}[dtype[-1]] if dtype[-2:] in {"64", "32", "16"} else 1
    assert parse({"a": entry(dtype, (3,), (0, 3 * item_bytes))}, 3 * item_bytes).entries["a"].dtype == dtype


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (entry("F33"), "unknown dtype 'F33'"),
        (entry("f32"), "unknown dtype 'f32'"),
        (entry(["F32"]), "unknown dtype"),  # type: ignore[arg-type]
        (entry(shape=(2, -3)), "shape .* is not a list of counts"),
        (entry(shape=(2, 3.0)), "shape .* is not a list of counts"),
        (entry(shape=(True, 6)), "shape .* is not a list of counts"),
        (entry(shape="6"), "shape '6' is not a list of counts"),
        (entry(shape=None), "shape None is not a list of counts"),
        (entry(shape=(2**40, 2**40), offsets=(0, 24)), "no tensor can have the shape"),
        (entry(shape=(0, 2**70), offsets=(0, 0)), "no tensor can have the shape"),
        (entry(shape=(1,) * 40, offsets=(0, 4)), "no tensor can have the shape"),
        (entry(shape=(2, 4)), "needs 32 bytes, data_offsets give 24"),
        (entry("F16"), "needs 12 bytes, data_offsets give 24"),
        (entry(offsets=(24, 0)), "are not a begin and an end"),
        (entry(offsets=(0, 12, 24)), "are not a begin and an end"),
        (entry(offsets=(-24, 0)), "data_offsets .* is not a list of counts"),
        (entry(offsets=(0.0, 24.0)), "data_offsets .* is not a list of counts"),
        (entry(offsets=None), "data_offsets None is not a list of counts"),
        ({"dtype": "F32", "shape": [2, 3]}, "must give dtype, shape and data_offsets"),
        (entry() | {"strides": [3, 1]}, "must give dtype, shape and data_offsets, and no more"),
        ([1, 2], "must give dtype, shape and data_offsets"),
        (None, "must give dtype, shape and data_offsets"),
    ],
)
def test_an_entry_that_cannot_be_is_refused_by_name(fields: Any, complaint: str) -> None:
    with pytest.raises(CheckpointError, match=complaint) as caught:
        parse({"layer.weight": fields})
    assert (caught.value.file, caught.value.tensor) == ("w.safetensors", "layer.weight")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("second", "data_bytes", "complaint"),
    [
        (entry(offsets=(20, 44)), 44, "begins at 20, expected 24: overlaps"),
        (entry(offsets=(0, 24)), 24, "begins at 0, expected 24: overlaps"),
        (entry(offsets=(28, 52)), 52, "begins at 28, expected 24: leaves a hole"),
        (entry(offsets=(24, 48)), 47, "truncated: ends at byte 48, the file holds 47"),
    ],
)
def test_tensors_must_lie_side_by_side_within_the_file(
    second: dict[str, Any], data_bytes: int, complaint: str
) -> None:
    with pytest.raises(CheckpointError, match=complaint) as caught:
        parse({"first": entry(), "second": second}, data_bytes)
    assert caught.value.tensor == "second"


def test_the_first_tensor_must_begin_at_the_start() -> None:
    with pytest.raises(CheckpointError, match="begins at 4, expected 0"):
        parse({"a": entry(offsets=(4, 28))}, 28)


def test_bytes_after_the_last_tensor_are_refused() -> None:
    with pytest.raises(CheckpointError, match="3 bytes follow the last tensor"):
        parse({"a": entry()}, 27)


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "\ud800", "x" * 2000])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be the name of a tensor"):
        parse({name: entry()})


@pytest.mark.parametrize("metadata", [[], "pt", {"format": 1}, {"format": {}}, None])
def test_metadata_must_map_strings_to_strings(metadata: Any) -> None:
    with pytest.raises(CheckpointError, match="__metadata__"):
        parse({"__metadata__": metadata, "a": entry()})


@pytest.mark.parametrize("content", [b" {}", b"[]", b"\xef\xbb\xbf{}", b""])
def test_a_header_begins_with_its_brace(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="header does not begin"):
        parse(content)


def test_a_tensor_named_twice_is_refused() -> None:
    text = json.dumps(entry())
    with pytest.raises(CheckpointError, match="'a' occurs twice"):
        parse(f'{{"a": {text}, "a": {text}}}'.encode())


def test_a_header_may_be_as_long_as_the_rest_of_the_file() -> None:
    assert header_length((92).to_bytes(8, "little"), 100, file="w") == 92


@pytest.mark.parametrize(
    ("prefix", "file_bytes", "complaint"),
    [
        (b"\x01\x02", 2, "truncated: only 2 bytes long"),
        ((93).to_bytes(8, "little"), 100, "the header should have 93 bytes, the file ends after 92"),
        ((MAX_HEADER_BYTES + 1).to_bytes(8, "little"), 2**40, "more than 100000000"),
        (b"\xff" * 8, 2**40, "more than 100000000"),
        (b"version ", 134, "Git LFS pointer"),
    ],
)
def test_a_length_that_cannot_be_is_refused(prefix: bytes, file_bytes: int, complaint: str) -> None:
    with pytest.raises(CheckpointError, match=complaint):
        header_length(prefix, file_bytes, file="w.safetensors")
