"""The one place where logging is set up: events with their fields, on standard error."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

THRESHOLDS = (logging.ERROR, logging.INFO, logging.DEBUG)
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class EventFormatter(logging.Formatter):
    """``12:00:00 warning plugin_set_aside plugin=cpu reason='…'``, with the traceback where there is one."""

    default_time_format = "%H:%M:%S"

    def format(self, record: logging.LogRecord) -> str:
        fields = (f"{key}={value!r}" for key, value in vars(record).items() if key not in STANDARD)
        words = [
            self.formatTime(record, self.default_time_format),
            record.levelname.lower(),
            record.getMessage(),
        ]
        line = " ".join([*words, *fields])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``time`` (RFC 3339), ``level``, ``event``, its fields, and ``traceback`` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        # Imported by those who want it: commands start without.
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


def configure(verbosity: int, log_format: str = "text") -> None:
    """Log errors; with one ``-v`` what happens, with two everything."""
    handler = logging.StreamHandler()
    handler.setFormatter(FORMATTERS[log_format]())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(THRESHOLDS[min(verbosity, len(THRESHOLDS) - 1)])
