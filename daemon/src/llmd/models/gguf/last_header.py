"""The header that was read last, for those who ask for it again while a model is opened."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import BinaryIO

from llmd.models.gguf.header import Header, read_header

SETTLED_NS = 2_000_000_000
"""A file that was written a shorter time ago may be written again without a new time of writing."""

_Stamp = tuple[Path, int, int, int, int]


class LastHeader:
    """Thread-safe. A vocabulary is a tenth of a second of reading, and a model that is loaded has its header read by its
    configuration, its tokenizer, its template and its weights.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[_Stamp, Header] | None = None

    def read(self, file: BinaryIO, path: Path) -> Header:
        """As `read_header`, but for a file whose header is known since it was written last."""
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
    """What tells whether a file is the same; None where nothing does."""
    found = os.fstat(file.fileno())
    if time.time_ns() - found.st_mtime_ns < SETTLED_NS:
        return None
    return path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


last_header = LastHeader()
"""That of this process."""
