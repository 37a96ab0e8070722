"""Logs of engine processes: JSON lines on standard error, which the front logs as its own events."""

from __future__ import annotations

import faulthandler
import json
import logging
import signal
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from llmd.api.decoding import prepared

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""Attributes that every `logging` record has; all others are fields of the event."""


STACKS_SIGNAL = signal.SIGQUIT
"""Makes an engine write what each of its threads runs."""


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event that an engine process logged."""

    event: str
    level: int
    """A level of `logging`."""
    fields: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return " ".join([self.event, *(f"{name}={value}" for name, value in self.fields.items())])


class EventLines(logging.Formatter):
    """Format a record as a line for `read_event`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"event": record.getMessage(), "level": record.levelno, "fields": fields_of(record)}
        return json.dumps(line, default=str)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of an event, with the traceback of its exception."""
    fields = {name: value for name, value in vars(record).items() if name not in STANDARD}
    if record.exc_info:
        fields["traceback"] = logging.Formatter().formatException(record.exc_info)
    return fields


def log_to_stderr() -> None:
    """Log events of level INFO and above as lines for the front."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EventLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def log_stacks_on_signal() -> None:
    """Write the stacks of all threads to standard error on `STACKS_SIGNAL`, whatever the threads do."""
    faulthandler.register(STACKS_SIGNAL)


def read_event(line: str) -> LoggedEvent | None:
    """Parse a line of `EventLines`; return None for other text."""
    try:
        event = msgspec.json.decode(line, type=prepared(LoggedEvent))
    except msgspec.DecodeError:
        return None
    fields = {name: value for name, value in event.fields.items() if name not in STANDARD}
    return msgspec.structs.replace(event, fields=fields)
