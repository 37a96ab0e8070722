"""Records of the daemon's log, and which of them are shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from rich.text import Text

LEVELS = ("debug", "info", "warning", "error")
KEPT = 5000
STYLES = {"warning": "bold", "error": "bold reverse"}


class Record(msgspec.Struct, frozen=True):
    """A line of the log, as ``GET /llmd/logs`` tells it."""

    time: str
    level: str
    event: str
    model: str | None = None
    fields: Mapping[str, Any] = {}

    @property
    def text(self) -> str:
        """The record in one line."""
        who = f" {self.model}" if self.model else ""
        said = {name: value for name, value in self.fields.items() if value is not None and value != ""}
        rest = "".join(f" {name}={value}" for name, value in said.items())
        return f"{self.time[11:23]} {self.level}{who} {self.event}{rest}"

    @property
    def line(self) -> Text:
        """The record as it is shown."""
        return Text(self.text, STYLES.get(self.level, ""), no_wrap=False)


class Records:
    """The newest records, and a choice of them."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=KEPT)
        self.level = "info"
        """The lowest level that is shown."""
        self.wanted = ""
        """Only records with this text are shown."""

    def add(self, records: Iterable[Record]) -> Sequence[Record]:
        """Keep records; return those that are shown."""
        new = list(records)
        self._records.extend(new)
        return [one for one in new if self._is_shown(one)]

    @property
    def shown(self) -> Sequence[Record]:
        return [one for one in self._records if self._is_shown(one)]

    def lower(self) -> str:
        """Show the next lower level, or errors alone after the lowest; return it."""
        self.level = LEVELS[LEVELS.index(self.level) - 1]
        return self.level

    def _is_shown(self, record: Record) -> bool:
        rank = LEVELS.index(record.level) if record.level in LEVELS else len(LEVELS)
        return rank >= LEVELS.index(self.level) and self.wanted.lower() in record.text.lower()
