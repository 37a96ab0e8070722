"""Cache the header that was read last: it is read several times while a model is opened."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import BinaryIO

from llmd.models.gguf.header import Header, read_header

SETTLED_NS = 2_000_000_000
"""A more recently written file is not cached: it could change again without a new modification time."""

_Stamp = tuple[Path, int, int, int, int]


class LastHeader:
    """Reads headers and caches the last one. Thread-safe.

    Reading a vocabulary takes a tenth of a second, and loading a model reads the header for the
    configuration, the tokenizer, the chat template and the weights.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[_Stamp, Header] | None = None

    def read(self, file: BinaryIO, path: Path) -> Header:
        """Return the cached header if the file has not changed since; otherwise call `read_header`."""
        with self._lock:
            stamp = _stamp(file, path)
            if self._last is not None and self._last[0] == stamp:
                return self._last[1]
            self._last = None
            header = read_header(file, path)
            if stamp is not None:
                self._last = stamp, header
            return header


def _stamp(file: BinaryIO, path: Path) -> _Stamp | None:
    """Return what identifies a version of a file; None if a change could go unnoticed."""
    found = os.fstat(file.fileno())
    if time.time_ns() - found.st_mtime_ns < SETTLED_NS:
        return None
    return path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


last_header = LastHeader()
"""The cache of this process."""
