"""A header is not read again while its file is unchanged, but is if that cannot be known."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import BinaryIO

import gguf
import pytest

from llmd.models.files import SETTLED_NS
from llmd.models.gguf import last_header
from llmd.models.gguf.header import Header, read_header
from llmd.models.gguf.last_header import LastHeader


def write(path: Path, name: str) -> Path:
    writer = gguf.GGUFWriter(path, name)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def age(path: Path, ns: int = 2 * SETTLED_NS) -> None:
    then = time.time_ns() - ns
    os.utime(path, ns=(then, then))


class Reader:
    """Count how often a header is actually read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._last = LastHeader()

        def count_and_read(file: BinaryIO, path: Path) -> Header:
            self.count += 1
            return read_header(file, path)

        monkeypatch.setattr(last_header, "read_header", count_and_read)

    def name(self, path: Path) -> object:
        with path.open("rb") as file:
            return self._last.read(file, path).metadata["general.architecture"]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(monkeypatch)


def test_a_header_is_read_once(reader: Reader, tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", "one")
    age(path)
    assert [reader.name(path), reader.name(path)] == ["one", "one"]
    assert reader.count == 1


def test_another_file_of_the_same_name_is_read(reader: Reader, tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", "one")
    age(path)
    assert reader.name(path) == "one"
    other = write(tmp_path / "b.gguf", "two")
    age(other)
    other.replace(path)
    assert reader.name(path) == "two"


def test_a_file_that_was_just_written_is_read_each_time(reader: Reader, tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", "one")
    assert reader.name(path) == "one"
    stamp = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    os.utime(path, ns=(stamp, stamp))  # as if within one tick of the file system's clock
    assert reader.name(path) == "two"
    assert reader.count == 2


def test_a_damaged_file_is_refused_each_time(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(b"GGUF")
    age(path)
    for _ in range(2):
        with pytest.raises(Exception, match=r"a\.gguf"):
            reader.name(path)
    assert reader.count == 2
