"""Sets up logging: events with their fields, on standard error."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmd.config.log_place import LogPlace

THRESHOLDS = (logging.ERROR, logging.INFO, logging.DEBUG)
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
LLMD = "llmd"
DAEMON = "llmd.server.daemon"
"""Logger of daemon starts and stops, which are logged at every verbosity."""
BARE = re.compile(r"[^\s\"'=\\\\]+")
INDENT = "    "


class EventFormatter(logging.Formatter):
    """One line per event, in local time.

    Such as ``2026-11-23T12:00:00.000+01:00 warning plugin_set_aside plugin=cpu reason="no driver"``.
    Multi-line texts, such as a traceback, follow below the event.
    """

    def __init__(self, *, with_time: bool = True) -> None:
        """``with_time`` is False for the journal, which has its own."""
        super().__init__()
        self._with_time = with_time

    def format(self, record: logging.LogRecord) -> str:
        words = [record.levelname.lower(), record.getMessage()]
        if self._with_time:
            time = datetime.fromtimestamp(record.created, UTC).astimezone()
            words.insert(0, time.isoformat(timespec="milliseconds"))
        below = []
        for name, value in vars(record).items():
            if name in STANDARD or value is None:
                continue
            if lines := _lines(value):
                below += [f"{INDENT}{name}:", *(f"{INDENT * 2}{line}" for line in lines)]
            else:
                words.append(f"{name}={_word(value)}")
        if record.exc_info:
            below.append(self.formatException(record.exc_info))
        return "\n".join([" ".join(words), *below])


def _lines(value: Any) -> list[str]:
    """Return the lines of a multi-line text, or of a list with texts that are not plain words; else []."""
    if isinstance(value, str) and "\n" in value.strip():
        return value.strip().splitlines()
    if isinstance(value, list | tuple) and any(
        isinstance(one, str) and not BARE.fullmatch(one) for one in value
    ):
        return list(_each_line(value))
    return []


def _each_line(values: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    for value in values:
        yield from str(value).splitlines()


def _word(value: Any) -> str:
    """Format a value on one line: bare if it can be read back, else as JSON."""
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        value = ",".join(value)
    if isinstance(value, bool | int | float | list | tuple | dict):
        return json.dumps(value, default=str, ensure_ascii=False)
    text = str(value)
    return text if BARE.fullmatch(text) and text.isprintable() else json.dumps(text, ensure_ascii=False)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ``time`` (RFC 3339), ``level``, ``event``, its fields, any ``traceback``."""

    def format(self, record: logging.LogRecord) -> str:
        # Imported late: other commands start faster.
        import msgspec

        fields = {key: value for key, value in vars(record).items() if key not in STANDARD}
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **fields,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


FORMATTERS: Mapping[str, type[logging.Formatter]] = {"text": EventFormatter, "json": JsonFormatter}


class LevelFilter(logging.Filter):
    """The least level that a handler writes: the levels of loggers do not suffice.

    A daemon lowers those for the events that it keeps in memory (`llmd.server.telemetry.log_buffer`).
    """

    threshold = of_daemon = logging.ERROR

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= (self.of_daemon if record.name == DAEMON else self.threshold)


def configure(verbosity: int, log_format: str = "text") -> None:
    """Log errors; with one ``-v`` also events, with two everything.

    A daemon's log always has its start and stop; only the default verbosity on a terminal omits them.
    """
    handler: logging.Handler = logging.StreamHandler()
    handler.setFormatter(FORMATTERS[log_format]())
    handler.addFilter(LevelFilter())
    logging.getLogger().handlers[:] = [handler]
    set_level(verbosity)


def set_level(verbosity: int, level: str = "error") -> None:
    """Log events from the level on, or more if ``-v`` asks for more."""
    root, ours = logging.getLogger(), logging.getLogger(LLMD)
    threshold = min(THRESHOLDS[min(verbosity, len(THRESHOLDS) - 1)], getattr(logging, level.upper()))
    # On a terminal `llmd serve` prints its own line.
    quiet = threshold == logging.ERROR and sys.stderr.isatty()
    of_daemon = threshold if quiet else min(threshold, logging.INFO)
    for found in (
        one for handler in root.handlers for one in handler.filters if isinstance(one, LevelFilter)
    ):
        found.threshold, found.of_daemon = threshold, of_daemon
    root.setLevel(threshold)
    if ours.level:  # a running daemon keeps its latest events, whatever is logged
        ours.setLevel(min(threshold, logging.INFO))
    logging.getLogger(DAEMON).setLevel(logging.NOTSET if quiet else of_daemon)


def log_as_daemon(place: LogPlace) -> None:
    """Log as a daemon does: with priorities to the journal, and to a file that is rotated."""
    from llmd.cli.log_file import JournalFormatter, RotatingHandler

    (handler,) = logging.getLogger().handlers
    formatter = handler.formatter
    assert formatter is not None
    if place.kind == "journal":
        inner = EventFormatter(with_time=False) if isinstance(formatter, EventFormatter) else formatter
        handler.setFormatter(JournalFormatter(inner))
    elif place.kind == "file":
        rotating = RotatingHandler(Path(place.path))
        rotating.setFormatter(formatter)
        rotating.filters[:] = handler.filters
        logging.getLogger().handlers[:] = [rotating]
