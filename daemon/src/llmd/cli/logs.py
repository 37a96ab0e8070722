"""The one place where logging is set up: events with their fields, on standard error."""

from __future__ import annotations

import logging

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


def configure(verbosity: int) -> None:
    """Log errors; with one ``-v`` what happens, with two everything."""
    handler = logging.StreamHandler()
    handler.setFormatter(EventFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(THRESHOLDS[min(verbosity, len(THRESHOLDS) - 1)])
