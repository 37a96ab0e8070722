"""A partly downloaded file, and the hashes of its content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

READ_BYTES = 1 << 20


class PartialFile:
    """An append-only file. Written bytes are hashed in both ways that hubs use: SHA-256 and git's SHA-1."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._expected = size_bytes
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        os.close(self._descriptor)

    def resume(self) -> Iterator[int]:
        """Hash the bytes of an earlier attempt; yield how many have been read."""
        present = os.fstat(self._descriptor).st_size
        if present > self._expected:
            self.restart()
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        while chunk := os.read(self._descriptor, READ_BYTES):
            self._hash(chunk)
            yield self.size_bytes

    def restart(self) -> None:
        """Discard the content."""
        os.ftruncate(self._descriptor, 0)
        self._reset()

    def append(self, chunk: bytes) -> None:
        """Write a received chunk; bytes beyond the expected size are dropped.

        Raises:
            OSError: the disk is full; the file holds the bytes that fitted.
        """
        view = memoryview(chunk)[: self._expected - self.size_bytes]
        self._hash(view)
        while view:
            view = view[os.write(self._descriptor, view) :]

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    @property
    def git_sha1(self) -> str:
        """Git's object hash of the content: the SHA-1 of a header and the content."""
        return self._git_sha1.hexdigest()

    def _reset(self) -> None:
        self.size_bytes = 0
        self._sha256 = hashlib.sha256()
        self._git_sha1 = hashlib.sha1(f"blob {self._expected}\0".encode(), usedforsecurity=False)

    def _hash(self, chunk: bytes | memoryview) -> None:
        self._sha256.update(chunk)
        self._git_sha1.update(chunk)
        self.size_bytes += len(chunk)
