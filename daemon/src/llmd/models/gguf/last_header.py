"""Cache the header that was read last: it is read several times while a model is opened."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import BinaryIO

from llmd.models.files import Stamp, stamp_of
from llmd.models.gguf.header import Header, read_header


class LastHeader:
    """Reads headers and caches the last one. Thread-safe.

    Reading a vocabulary takes a tenth of a second, and loading a model reads the header for the
    configuration, the tokenizer, the chat template and the weights.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[Stamp, Header] | None = None

    def read(self, file: BinaryIO, path: Path) -> Header:
        """Return the cached header if the file has not changed since; otherwise call `read_header`."""
        with self._lock:
            stamp = stamp_of(path, os.fstat(file.fileno()))
            if self._last is not None and self._last[0] == stamp:
                return self._last[1]
            self._last = None
            header = read_header(file, path)
            self._last = stamp, header
            return header


last_header = LastHeader()
"""The cache of this process."""
