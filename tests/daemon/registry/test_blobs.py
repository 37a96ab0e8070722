from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from llmd.registry.blobs import ABANDONED_S, Blobs


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs", tmp_path / "partial")


def add(blobs: Blobs, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    file = blobs.folder.parent / "file"
    file.write_bytes(content)
    blobs.adopt(file, sha256)
    return sha256


def test_an_adopted_file_is_the_blob_and_cannot_be_written_into(blobs: Blobs) -> None:
    path = blobs.path(add(blobs, b"content"))
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"content", 0o444)
    assert not (blobs.folder.parent / "file").exists()


def test_what_nobody_needs_is_freed_and_parts_of_pulls_stay(blobs: Blobs) -> None:
    needed, other = add(blobs, b"needed"), add(blobs, b"other!!")
    blobs.partial.mkdir()
    for name in ("part", "part.lock"):
        (blobs.partial / name).touch()
    assert blobs.free({needed}) == len(b"other!!")
    assert blobs.path(needed).exists()
    assert not blobs.path(other).exists()
    assert [path.name for path in blobs.partial.iterdir()] == ["part"]
    assert blobs.free({needed}) == 0


def test_parts_that_nobody_has_gone_on_with_for_a_week_are_freed(blobs: Blobs) -> None:
    blobs.partial.mkdir()
    week_ago = time.time() - ABANDONED_S
    for name, modified in (("old", week_ago - 60), ("young", week_ago + 3600), ("young.lock", week_ago - 60)):
        (blobs.partial / name).write_bytes(b"part")
        os.utime(blobs.partial / name, (modified, modified))
    assert blobs.unfinished() == [len(b"part")] * 2
    assert blobs.free(()) == 2 * len(b"part")
    assert [path.name for path in blobs.partial.iterdir()] == ["young"]
