"""Download files from a hub into the store: resume after a break, and check the hash before storing."""

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
"""How many attempts in a row may fail without receiving a byte."""
BACKOFF_S = 1.0
LOCK_POLL_S = 0.2

Open = Callable[[str, int], contextlib.AbstractContextManager[Content]]
"""Opens a file of the repository at a byte offset."""


class Progress(msgspec.Struct, frozen=True):
    """How far the download of a file is."""

    completed: int
    """Bytes on disk."""
    verifying: bool = False
    """True while the bytes of an earlier attempt are read back to hash them."""


class Downloader:
    """Downloads files of one repository."""

    def __init__(self, blobs: Blobs, open_content: Open, sleep: Callable[[float], None] = time.sleep) -> None:
        self._blobs = blobs
        self._open = open_content
        self._sleep = sleep

    def have(self, file: HubFile) -> int:
        """Return how many bytes of a file are on disk already."""
        return file.size_bytes if self._is_here(file) else min(_size(self._part(file)), file.size_bytes)

    def fetch(self, file: HubFile) -> Generator[Progress, None, str]:
        """Download a file and return the SHA-256 of its blob. Received bytes are kept, even if this fails.

        Raises:
            HubError: the hub refuses the request or cannot be reached, or the hash does not match.
            DiskSpaceError: the disk is full.
        """
        if self._is_here(file):
            return file.sha256
        part = self._part(file)
        with contextlib.ExitStack() as stack:
            lock_path = part.with_name(f"{part.name}.lock")
            # If several processes need the file, one downloads it and the others report its progress.
            while (lock := FileLock.take(lock_path, alone=True, wait=False)) is None:
                yield Progress(_size(part))
                self._sleep(LOCK_POLL_S)
            stack.callback(lock.close)
            if self._is_here(file):
                return file.sha256
            stack.enter_context(_full_disk_reported(part, file))
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
            f"{file.path} was downloaded twice, and its hash never matched the hub's ({file.digest})",
            hint="the hub or a proxy corrupts the file: try again later, or use another --hub",
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
def _full_disk_reported(part: Path, file: HubFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise DiskSpaceError(
            f"the disk is full: {format_bytes(_size(part))} of {format_bytes(file.size_bytes)} "
            f"of {file.path} are in {part.parent}",
            hint="free some space and pull again: downloaded data is kept",
        ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
