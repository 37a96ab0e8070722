from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from llmd.registry.partial_file import PartialFile

CONTENT = b"some content" * 1000


def test_hashes_what_is_written_and_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "below" / "part"
    with PartialFile(path, len(CONTENT)) as part:
        part.append(CONTENT[:5000])
    with PartialFile(path, len(CONTENT)) as part:
        assert list(part.resume()) == [5000]
        part.append(CONTENT[5000:])
        assert part.sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert part.git_sha1 == hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
    assert path.read_bytes() == CONTENT


def test_more_than_was_promised_is_dropped(tmp_path: Path) -> None:
    with PartialFile(tmp_path / "part", 4) as part:
        part.append(b"123456")
        part.append(b"7")
        assert part.size_bytes == 4
    assert (tmp_path / "part").read_bytes() == b"1234"


def test_what_is_too_long_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"12345")
    with PartialFile(tmp_path / "part", 4) as part:
        assert list(part.resume()) == []
        assert part.size_bytes == 0


def test_after_a_restart_only_the_new_content_counts(tmp_path: Path) -> None:
    with PartialFile(tmp_path / "part", 3) as part:
        part.append(b"ab")
        part.restart()
        part.append(b"xyz")
        assert part.sha256 == hashlib.sha256(b"xyz").hexdigest()


def test_writes_that_the_system_cuts_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    with PartialFile(tmp_path / "part", 100) as part:
        part.append(CONTENT[:100])
    assert (tmp_path / "part").read_bytes() == CONTENT[:100]
