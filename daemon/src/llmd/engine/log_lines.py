"""How engine processes log: one JSON object a line on standard error, which the front reads and logs as its own event."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""What every record of `logging` has; all else are fields of the event."""


class LoggedEvent(msgspec.Struct, frozen=True):
    """``level`` is one of `logging`'s numbers."""

    event: str
    level: int
    fields: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return " ".join([self.event, *(f"{name}={value}" for name, value in self.fields.items())])


class EventLines(logging.Formatter):
    """Writes a record as a line that `read_event` reads."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in STANDARD}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        line = {"event": record.getMessage(), "level": record.levelno, "fields": fields}
        return json.dumps(line, default=str)


def log_to_stderr() -> None:
    """Log events from INFO on as lines for the front."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EventLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def read_event(line: str) -> LoggedEvent | None:
    """Read a line of `EventLines`; None for any other text."""
    try:
        event = msgspec.json.decode(line, type=LoggedEvent)
    except msgspec.DecodeError:
        return None
    fields = {name: value for name, value in event.fields.items() if name not in STANDARD}
    return msgspec.structs.replace(event, fields=fields)
