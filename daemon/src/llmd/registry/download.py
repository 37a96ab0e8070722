"""One file from a hub into the store: resumed where it broke off, and not believed before its hash is right."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec

from llmd.api.byte_size import format_bytes
from llmd.api.errors import DiskSpaceError, HubError
from llmd.registry.blobs import Blobs
from llmd.registry.hub import Content, HubFile
from llmd.registry.hub_errors import HubLostError
from llmd.registry.locks import FileLock
from llmd.registry.partial_file import PartialFile

TRIES = 6
"""So often in succession may a connection break without a single byte."""
BACKOFF_S = 1.0
LOCK_POLL_S = 0.2

Open = Callable[[str, int], contextlib.AbstractContextManager[Content]]
"""Opens a file of the repository at an offset."""


class Progress(msgspec.Struct, frozen=True):
    """How many bytes of a file are here; ``verifying``: what an earlier try has left is read again to hash it."""

    completed: int
    verifying: bool = False


class Downloader:
    """Fetches files of one repository."""

    def __init__(self, blobs: Blobs, open_content: Open, sleep: Callable[[float], None] = time.sleep) -> None:
        self._blobs = blobs
        self._open = open_content
        self._sleep = sleep

    def have(self, file: HubFile) -> int:
        """How many bytes of a file need not come again."""
        return file.size_bytes if self._is_here(file) else min(_size(self._part(file)), file.size_bytes)

    def fetch(self, file: HubFile) -> Generator[Progress, None, str]:
        """Fetch a file and return the SHA-256 of its blob. What has come stays, however this ends.

        Raises:
            HubError: the hub refuses, is lost, or sends another content than it promised.
            DiskSpaceError: the disk is full.
        """
        if self._is_here(file):
            return file.sha256
        part = self._part(file)
        with contextlib.ExitStack() as stack:
            lock_path = part.with_name(f"{part.name}.lock")
            # Of several processes that want a file one fetches it, and the others see how far it has come.
            while (lock := FileLock.take(lock_path, alone=True, wait=False)) is None:
                yield Progress(_size(part))
                self._sleep(LOCK_POLL_S)
            stack.callback(lock.close)
            if self._is_here(file):
                return file.sha256
            stack.enter_context(_full_disk_told(part, file))
            return (yield from self._fetch(file, part))

    def _is_here(self, file: HubFile) -> bool:
        return bool(file.sha256) and self._blobs.path(file.sha256).exists()

    def _part(self, file: HubFile) -> Path:
        return self._blobs.partial / file.key

    def _fetch(self, file: HubFile, path: Path) -> Generator[Progress, None, str]:
        for _ in range(2):
            with PartialFile(path, file.size_bytes) as part:
                for completed in part.resume():
                    yield Progress(completed, verifying=True)
                yield from self._complete(file, part)
            if file.sha256 == part.sha256 if file.sha256 else file.git_sha1 == part.git_sha1:
                self._blobs.adopt(path, part.sha256)
                return part.sha256
            path.unlink()
        raise HubError(
            f"{file.path} came twice with another hash than the hub promised ({file.digest})",
            hint="the hub or a proxy on the way damages it: try again later, or another --hub",
        )

    def _complete(self, file: HubFile, part: PartialFile) -> Iterator[Progress]:
        failures = 0
        while part.size_bytes < file.size_bytes:
            before = part.size_bytes
            lost = HubLostError(
                f"{file.path} ended after {format_bytes(before)} of {format_bytes(file.size_bytes)}",
                hint="try again",
            )
            try:
                yield from self._receive(file, part)
            except HubLostError as error:
                lost = error
            if part.size_bytes < file.size_bytes:
                failures = failures + 1 if part.size_bytes <= before else 1
                if failures >= TRIES:
                    raise lost
                self._sleep(BACKOFF_S * 2 ** (failures - 1))

    def _receive(self, file: HubFile, part: PartialFile) -> Iterator[Progress]:
        with self._open(file.path, part.size_bytes) as content:
            if content.offset != part.size_bytes:
                part.restart()
            for chunk in content.chunks:
                part.append(chunk)
                yield Progress(part.size_bytes)


@contextlib.contextmanager
def _full_disk_told(part: Path, file: HubFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise DiskSpaceError(
            f"the disk is full: {format_bytes(_size(part))} of {format_bytes(file.size_bytes)} "
            f"of {file.path} are in {part.parent}",
            hint="make room and pull again: what has come is kept",
        ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
