"""File locks. The system releases them when their process ends, even if it crashes."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self


class FileLock:
    """A shared or exclusive lock on a file, held until it is closed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path, *, alone: bool, wait: bool = True) -> Self | None:
        """Take the lock; create its file if it is missing.

        Return None if another holder excludes it and ``wait`` is false. ``alone`` asks for an exclusive lock.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        mode = (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB)
        try:
            fcntl.flock(descriptor, mode)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def close(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextlib.contextmanager
def locked(path: Path, *, alone: bool) -> Iterator[None]:
    """Wait for a lock and hold it."""
    lock = FileLock.take(path, alone=alone)
    assert lock is not None
    try:
        yield
    finally:
        lock.close()
