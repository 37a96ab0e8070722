from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from llmd.api.errors import CheckpointError
from llmd.models.files import SETTLED_NS, file_size, is_named, open_file, read_bytes, stamps


def test_reads_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    assert read_bytes(path, max_bytes=7) == b"content"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the file is missing") as caught:
        open_file(tmp_path / "absent")
    assert caught.value.file == str(tmp_path / "absent")
    assert caught.value.hint


def test_a_link_has_its_name_wherever_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "long").symlink_to("x" * 300)
    assert [is_named(tmp_path / name) for name in ("link", "long", "absent")] == [True, True, False]


def test_a_dangling_link_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="the file is missing"):
        open_file(tmp_path / "link")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a regular file"):
        open_file(tmp_path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="not a regular file"):
        open_file(tmp_path / "pipe")


def test_other_failures_give_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="File name too long"):
        open_file(tmp_path / ("x" * 300))


def test_a_file_over_its_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with pytest.raises(CheckpointError, match="larger than 6 bytes"):
        read_bytes(path, max_bytes=6)


def test_no_more_memory_is_taken_than_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_bytes(b"{}")
    assert read_bytes(path, max_bytes=1 << 62) == b"{}"  # a buffer of that size cannot be allocated


def test_the_size_is_that_of_now(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with open_file(path) as file:
        os.truncate(path, 3)
        assert file_size(file) == 3


def test_stamps_tell_a_file_from_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a")
    then = time.time_ns() - 2 * SETTLED_NS
    os.utime(path, ns=(then, then))
    first = stamps([path])
    assert stamps([path]) == first
    path.write_bytes(b"ab")
    assert stamps([path]) != first
    path.unlink()
    with pytest.raises(CheckpointError, match="cannot be read: No such file"):
        stamps([path])


def test_stamps_of_a_file_that_was_just_written_never_match(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a")
    assert stamps([path]) != stamps([path])
