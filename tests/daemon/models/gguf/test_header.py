from __future__ import annotations

import contextlib
from pathlib import Path
from struct import pack

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.gguf.header import Header, read_header
from tests.corrupt.gguf_bytes import F16, Q8_0, U32, StatedTensor, gguf, key


def parse(tmp_path: Path, content: bytes) -> Header:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with path.open("rb") as file:
        return read_header(file, path)


def aligned(value: int) -> bytes:
    return key("general.alignment", U32, pack("<I", value))


TWO = (StatedTensor("a", (4, 2)), StatedTensor("b", (32, 3), Q8_0, 32))


@pytest.mark.parametrize("version", [2, 3])
def test_gives_tensors_with_the_outermost_dimension_first(tmp_path: Path, version: int) -> None:
    header = parse(tmp_path, gguf([], TWO, version=version, data=bytes(32 + 3 * 34)))
    first, second = header.entries.values()
    assert (header.version, first.name, first.shape, first.type.name) == (version, "a", (2, 4), "F32")
    assert (second.shape, second.stored_shape, second.type.name) == ((3, 32), (3, 34), "Q8_0")
    assert second.begin == first.end
    assert first.end % 32 == 0


def test_tensors_begin_at_multiples_of_the_alignment(tmp_path: Path) -> None:
    tensors = (StatedTensor("a", (4,), F16), StatedTensor("b", (4,), F16, 64))
    header = parse(tmp_path, gguf([aligned(64)], tensors, data=bytes(128), alignment=64))
    assert header.entries["a"].begin % 64 == 0
    assert header.entries["b"].begin == header.entries["a"].begin + 64


def test_tensors_may_stand_in_another_order_than_their_data(tmp_path: Path) -> None:
    header = parse(tmp_path, gguf([], TWO[::-1], data=bytes(32 + 3 * 34)))
    assert list(header.entries) == ["a", "b"]


def test_a_file_may_hold_no_tensor(tmp_path: Path) -> None:
    assert not parse(tmp_path, gguf([], (), data=b"")).entries


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "does not begin with GGUF"),
        (b"GGUF\3\0", "does not begin with GGUF"),
        (gguf(magic=b"gguf"), "does not begin with GGUF"),
        (b"version https://git-lfs", "git lfs pull"),
        (b"tjgg\3\0\0\0", "formats before GGUF"),
        (gguf(version=1), "version 1; supported are 2, 3"),
        (gguf(version=4), "version 4; supported are 2, 3"),
        (gguf(version=3 << 24), "big-endian"),
        (gguf()[:-40], "truncated"),
        (gguf(num_tensors=2), "cannot be the name"),
        (gguf(num_tensors=2**63), "truncated"),
        (gguf(num_keys=2**63), "truncated"),
        (gguf([aligned(0)]), "general.alignment is 0"),
        (gguf([aligned(24)]), "general.alignment is 24"),
        (gguf([aligned(1 << 21)]), "general.alignment is"),
        (gguf([], [StatedTensor("")]), "cannot be the name"),
        (gguf([], [StatedTensor("\x1b[2J")]), "cannot be the name"),
        (gguf([], [StatedTensor(b"\xff")]), "not UTF-8"),
        (gguf([], [StatedTensor("a", (2, 2, 2, 2, 2))]), "states 5 dimensions"),
        (gguf([], [StatedTensor("a", kind=4)]), "a: has the unknown type 4"),
        (gguf([], [StatedTensor("a", kind=999)]), "a: has the unknown type 999"),
        (gguf([], [StatedTensor("a", (8,), Q8_0)]), "rows of 8 elements, but Q8_0 has blocks of 32"),
        (gguf([], [StatedTensor("a", (2**62, 4))]), "no tensor can have the shape"),
        (gguf([], [StatedTensor("a", (2**62, 4, 0))]), "no tensor can have the shape"),
        (gguf([], [StatedTensor("a", (9,))]), "a: truncated: ends at byte"),
        (gguf([], [StatedTensor("a", offset=32)]), "leaves a hole"),
        (gguf([], [StatedTensor("a", offset=2**63)]), "leaves a hole"),
        (gguf([], [StatedTensor("a", offset=1)]), "begins at byte"),
        (gguf([], [StatedTensor("a"), StatedTensor("b")]), "overlaps the tensor before it"),
        (gguf([], [StatedTensor("a"), StatedTensor("a", offset=32)], data=bytes(64)), "occurs twice"),
        (gguf(data=bytes(64)), "32 bytes follow the last tensor"),
    ],
)
def test_damage_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    with pytest.raises(CheckpointError, match=complaint) as caught:
        parse(tmp_path, content)
    assert caught.value.hint
    assert caught.value.file == str(tmp_path / "m.gguf")


def test_no_flipped_byte_and_no_cut_raises_another_error(tmp_path: Path) -> None:
    whole = gguf([aligned(32), key("a", U32, bytes(4))], TWO, data=bytes(32 + 3 * 34))
    path = tmp_path / "m.gguf"
    for at in range(len(whole) - 134):
        for damaged in (whole[:at], *(whole[:at] + bytes([b]) + whole[at + 1 :] for b in (0, 1, 0x7F, 0xFF))):
            path.write_bytes(damaged)
            with path.open("rb") as file, contextlib.suppress(CheckpointError):
                read_header(file, path)
