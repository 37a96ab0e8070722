from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.gguf.header_reader import FIRST_BYTES, MAX_HEADER_BYTES, HeaderReader, decode_text
from tests.corrupt.gguf_bytes import text


def test_numbers_and_strings_follow_one_another(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(pack("<IQ", 7, 2**40) + text("é") + pack("<I", 8))
    with path.open("rb") as file:
        read = HeaderReader(file, name="m.gguf")
        assert (read.u32(), read.u64(), read.string(), read.u32()) == (7, 2**40, "é", 8)
        assert read.at == path.stat().st_size


def test_strings_that_reach_over_what_was_read_first_are_passed(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    strings = [text("x" * (FIRST_BYTES // 2 - 4)) for _ in range(5)]
    path.write_bytes(b"".join(strings) + pack("<I", 9))
    with path.open("rb") as file:
        read = HeaderReader(file, name="m.gguf")
        read.skip_strings(5)
        assert read.u32() == 9


@pytest.mark.parametrize(
    "content",
    [b"\1\0\0", text("abc")[:-1], pack("<Q", 2**63), pack("<Q", 2**64 - 1)],
    ids=["a number cut", "a string cut", "a long string", "the longest string"],
)
def test_what_goes_beyond_the_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    for step in (HeaderReader.string, lambda read: read.skip_strings(1)):
        with path.open("rb") as file, pytest.raises(CheckpointError, match="truncated") as caught:
            step(HeaderReader(file, name="m.gguf"))
        assert caught.value.file == "m.gguf"


def test_a_number_of_things_must_fit_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(pack("<Q", 3) + bytes(12))
    with path.open("rb") as file:
        assert HeaderReader(file, name="m.gguf").count(least_bytes=4) == 3
    with path.open("rb") as file, pytest.raises(CheckpointError, match="the header needs at least 23 bytes"):
        HeaderReader(file, name="m.gguf").count(least_bytes=5)


def test_a_header_of_absurd_length_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    with path.open("wb") as sparse:
        sparse.write(pack("<Q", MAX_HEADER_BYTES))
        sparse.truncate(2 * MAX_HEADER_BYTES)
    with path.open("rb") as file, pytest.raises(CheckpointError, match="more than"):
        HeaderReader(file, name="m.gguf").string()


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(CheckpointError, match="not UTF-8"):
        decode_text(b"\xff", file="m.gguf")
