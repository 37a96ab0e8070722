"""Locks on files, which the system gives back when their process ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self


class FileLock:
    """A lock that is held until it is closed. Several may share one file, or one may have it alone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path, *, alone: bool, wait: bool = True) -> Self | None:
        """Take the lock, whose file is made where it is missing; None where another has it and ``wait`` is false."""
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
        """Give the lock back; a second time does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextlib.contextmanager
def locked(path: Path, *, alone: bool) -> Iterator[None]:
    """Hold a lock, once nobody else has it."""
    lock = FileLock.take(path, alone=alone)
    assert lock is not None
    try:
        yield
    finally:
        lock.close()
