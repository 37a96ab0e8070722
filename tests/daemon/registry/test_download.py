from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmd.api.byte_size import format_bytes
from llmd.api.errors import DiskSpaceError, HubError
from llmd.registry.blobs import Blobs
from llmd.registry.download import TRIES, Downloader, Progress
from llmd.registry.hub import Content, HubFile
from llmd.registry.hub_errors import HubLostError
from llmd.registry.locks import locked

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()
GIT = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
LARGE = HubFile("model.safetensors", len(CONTENT), SHA256, GIT)
SMALL = HubFile("config.json", len(CONTENT), "", GIT)


class Remote:
    """A hub with one file. Each entry of ``answers`` is how many bytes a response sends before it breaks."""

    def __init__(self, content: bytes = CONTENT, answers: list[int] | None = None) -> None:
        self.contents = [content]
        self.answers = answers or []
        self.offsets: list[int] = []
        self.ignores_ranges = False
        self.is_lost_at_once = False
        self.ends_early = False

    @contextmanager
    def open(self, _path: str, offset: int) -> Iterator[Content]:
        self.offsets.append(offset)
        if self.is_lost_at_once:
            raise HubLostError("lost", hint="again")
        begun = 0 if self.ignores_ranges else offset
        content = self.contents.pop(0) if len(self.contents) > 1 else self.contents[0]
        yield Content(begun, self._chunks(content[begun:]))

    def _chunks(self, content: bytes) -> Iterator[bytes]:
        most = self.answers.pop(0) if self.answers else len(content)
        for start in range(0, min(most, len(content)), 1000):
            yield content[start : min(start + 1000, most)]
        if most < len(content) and not self.ends_early:
            raise HubLostError("broken", hint="again")


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs", tmp_path / "partial")


def run(fetching: Generator[Progress, None, str]) -> tuple[list[Progress], str]:
    """Return every step and the hash."""
    steps = []
    while True:
        try:
            steps.append(next(fetching))
        except StopIteration as done:
            return steps, done.value


def fetch(
    blobs: Blobs, remote: Remote, file: HubFile = LARGE, slept: list[float] | None = None
) -> list[Progress]:
    slept = [] if slept is None else slept
    steps, sha256 = run(Downloader(blobs, remote.open, slept.append).fetch(file))
    assert blobs.path(sha256).read_bytes() == CONTENT
    return steps


@pytest.mark.parametrize("file", [LARGE, SMALL])
def test_a_file_becomes_the_blob_of_its_content(blobs: Blobs, file: HubFile) -> None:
    steps = fetch(blobs, Remote(), file)
    assert [step.completed for step in steps] == [*range(1000, len(CONTENT), 1000), len(CONTENT)]
    assert not (blobs.partial / file.key).exists()


def test_what_is_here_is_not_fetched_again(blobs: Blobs) -> None:
    fetch(blobs, Remote())
    again = Remote()
    assert Downloader(blobs, again.open).have(LARGE) == len(CONTENT)
    assert fetch(blobs, again) == []
    assert again.offsets == []


def test_a_connection_that_breaks_is_taken_up_where_it_broke(blobs: Blobs) -> None:
    remote, slept = Remote(answers=[3000, 0, 10, 4000]), list[float]()
    steps = fetch(blobs, remote, slept=slept)
    assert remote.offsets == [0, 3000, 3000, 3010, 7010]
    completed = [step.completed for step in steps]
    assert completed == sorted(completed)
    assert slept == [1.0, 1.0 * 2, 1.0, 1.0]


def test_an_end_that_comes_too_early_is_a_broken_connection(blobs: Blobs) -> None:
    remote = Remote(answers=[3000])
    remote.ends_early = True
    fetch(blobs, remote)
    assert remote.offsets == [0, 3000]


def test_a_connection_that_never_comes_is_given_up(blobs: Blobs) -> None:
    remote, slept = Remote(), list[float]()
    remote.is_lost_at_once = True
    with pytest.raises(HubLostError):
        fetch(blobs, remote, slept=slept)
    assert len(remote.offsets) == TRIES
    assert slept == sorted(slept)


def test_a_later_try_goes_on_with_what_an_earlier_one_left(blobs: Blobs) -> None:
    fetching = Downloader(blobs, Remote().open).fetch(LARGE)
    for _ in range(3):
        next(fetching)
    fetching.close()
    remote = Remote()
    assert Downloader(blobs, remote.open).have(LARGE) == 3000
    steps = fetch(blobs, remote)
    assert remote.offsets == [3000]
    assert steps[0] == Progress(3000, verifying=True)


def test_a_hub_that_cannot_begin_in_the_middle_is_read_from_the_start(blobs: Blobs) -> None:
    remote = Remote(answers=[3000])
    remote.ignores_ranges = True
    fetch(blobs, remote)
    assert remote.offsets == [0, 3000]


def test_wrong_bytes_are_fetched_again_once(blobs: Blobs) -> None:
    remote = Remote()
    remote.contents = [b"x" + CONTENT[1:], CONTENT]
    fetch(blobs, remote)
    assert remote.offsets == [0, 0]


def test_a_part_that_was_damaged_on_the_disk_is_fetched_again(blobs: Blobs) -> None:
    blobs.partial.mkdir()
    (blobs.partial / LARGE.key).write_bytes(b"y" * 3000)
    fetch(blobs, Remote())


@pytest.mark.parametrize("file", [LARGE, SMALL])
def test_wrong_bytes_are_never_believed(blobs: Blobs, file: HubFile) -> None:
    with pytest.raises(HubError, match="was downloaded twice, and its hash never matched"):
        fetch(blobs, Remote(b"x" + CONTENT[1:]), file)
    assert not blobs.folder.exists()
    assert not (blobs.partial / file.key).exists()


def test_a_full_disk_keeps_what_has_come(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = os.write, [2500]

    def on_a_full_disk(descriptor: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", on_a_full_disk)
    with pytest.raises(
        DiskSpaceError, match=f"2.4 KiB of {format_bytes(len(CONTENT))} of model.safetensors"
    ) as caught:
        fetch(blobs, Remote())
    assert caught.value.exit_code == 5
    room[0] = len(CONTENT)
    remote = Remote()
    fetch(blobs, remote)
    assert remote.offsets == [2500]


def test_an_empty_file_is_a_file(blobs: Blobs) -> None:
    empty = HubFile("merges.txt", 0, "", hashlib.sha1(b"blob 0\0").hexdigest())
    _, sha256 = run(Downloader(blobs, Remote(b"").open).fetch(empty))
    assert blobs.path(sha256).read_bytes() == b""


def test_two_who_want_a_file_share_one_download(blobs: Blobs) -> None:
    """The second waits for the first, reports its progress, and sends the hub no request."""
    blobs.partial.mkdir()
    first, second = Remote(), Remote()
    waits = threading.Event()
    steps: list[Progress] = []

    def wait(_seconds: float) -> None:
        waits.set()
        finished.wait()

    finished = threading.Event()
    thread = threading.Thread(
        target=lambda: steps.extend(run(Downloader(blobs, second.open, wait).fetch(LARGE))[0])
    )
    fetching = Downloader(blobs, first.open).fetch(LARGE)
    next(fetching)
    thread.start()
    assert waits.wait(20)
    run(fetching)
    finished.set()
    thread.join()
    assert steps == [Progress(1000)]
    assert second.offsets == []


def test_other_refusals_of_the_system_are_not_called_a_full_disk(blobs: Blobs) -> None:
    blobs.partial.mkdir()
    (blobs.partial / LARGE.key).mkdir()
    with locked(blobs.partial / "other", alone=True), pytest.raises(IsADirectoryError):
        fetch(blobs, Remote())
