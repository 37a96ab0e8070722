"""The latest log records of the daemon and its engines, in memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from llmd.engine.log_lines import fields_of
from llmd.server.telemetry.feed import Feed

KEPT = 2000
MAX_BYTES = 4 << 20
LLMD = "llmd"
"""The logger of all of llmd."""
PLAIN = (str, int, float, bool, type(None))


class LogBuffer(logging.Handler):
    """Keeps records from INFO on, whatever else is logged where. Each is an event ``log`` of ``feed``.

    Create it on the event loop, and read ``feed`` there; records may come from any thread.
    """

    _attached: ClassVar[set[LogBuffer]] = set()
    """Those of all daemons of this process that receive records."""

    def __init__(self) -> None:
        super().__init__()
        self.feed = Feed(KEPT, MAX_BYTES)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Receive records until the block ends."""
        root, ours = logging.getLogger(), logging.getLogger(LLMD)
        # Where nobody has set up logging, Python prints warnings as long as there is no handler at all.
        printing = None if root.handlers else logging.lastResort
        if printing is not None:
            root.addHandler(printing)
        root.addHandler(self)
        ours.setLevel(min(ours.getEffectiveLevel(), logging.INFO))
        self._attached.add(self)
        try:
            yield
        finally:
            root.removeHandler(self)
            if printing is not None:
                root.removeHandler(printing)
            self._attached.remove(self)
            if not self._attached:
                ours.setLevel(logging.NOTSET)

    def emit(self, record: logging.LogRecord) -> None:
        fields = {name: _plain(value) for name, value in fields_of(record).items()}
        event = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "model": fields.pop("model", None) or None,
            "fields": fields,
        }
        if threading.get_ident() == self._thread:
            self.feed.emit("log", event, record.levelno)
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.feed.emit, "log", event, record.levelno)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; others become their text."""
    return value if isinstance(value, PLAIN) else msgspec.to_builtins(value, enc_hook=str, str_keys=True)
