"""Files of the cache are whole or not there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from llmd_backend_cuda.cached_files import read_file, write_file

DAY_S = 86400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "file"


def test_a_file_has_what_was_written_last(path: Path) -> None:
    for contents in (b"first", b"second, longer"):
        write_file(path, contents)
        assert read_file(path) == contents
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "changed"])
def test_a_file_that_is_not_as_it_was_written_is_not_there(path: Path, damage: str) -> None:
    write_file(path, b"contents")
    stored = path.read_bytes()
    path.write_bytes({"empty": b"", "cut": stored[:-1], "changed": stored[:-1] + b"S"}.get(damage, stored))
    if damage == "missing":
        path.unlink()
    assert read_file(path) is None


def test_reading_a_file_notes_that_it_is_used(path: Path) -> None:
    write_file(path, b"contents")
    os.utime(path, (time.time() - 2 * DAY_S,) * 2)
    read_file(path)
    assert time.time() - path.stat().st_mtime < DAY_S


def test_a_file_that_cannot_be_written_leaves_nothing(path: Path) -> None:
    (path / "a folder in its place").mkdir(parents=True)
    with pytest.raises(OSError, match="file"):
        write_file(path, b"contents")
    assert list(path.parent.iterdir()) == [path]
