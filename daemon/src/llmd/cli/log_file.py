"""Log handlers for daemons: the journal with priorities, and a file that is rotated."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from pathlib import Path

from llmd.config.log_place import is_file

MAX_BYTES = 10 << 20
NUM_OLD = 5
"""Older files that are kept, as ``daemon.log.1`` (the newest) to ``daemon.log.5``."""

PRIORITIES = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.NOTSET, 7))
"""syslog's priorities, by the least level that has them."""


class JournalFormatter(logging.Formatter):
    """Puts the priority of the event before each line of another formatter, as journald expects."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        priority = next(number for level, number in PRIORITIES if record.levelno >= level)
        return "\n".join(f"<{priority}>{line}" for line in self._inner.format(record).splitlines())


class RotatingHandler(logging.StreamHandler):  # type: ignore[type-arg]  # not generic at run time in 3.11
    """Writes to standard error, which is ``path``, and replaces it by a new file when it is full.

    The descriptor itself is moved to the new file, so that what libraries write to it, too, is not lost.
    Child processes that have inherited it continue in the old file.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, descriptor: int = 2) -> None:
        super().__init__(sys.stderr)
        self._path = path
        self._max_bytes = max_bytes
        self._descriptor = descriptor

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        try:
            if os.fstat(self._descriptor).st_size >= self._max_bytes:
                self._rotate()
        except OSError:  # a full disk or a removed folder: the log goes on in the old file
            self.handleError(record)

    def _rotate(self) -> None:
        # Several daemons of one user may share the file. The lock is that of the open file.
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        if is_file(self._path, self._descriptor):  # else another daemon has rotated it
            for number in range(NUM_OLD, 0, -1):
                older = self._numbered(number - 1) if number > 1 else self._path
                if older.exists():
                    older.replace(self._numbered(number))
        new = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(new, self._descriptor)
        os.close(new)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
