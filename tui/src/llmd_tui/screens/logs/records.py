"""Records of the daemon's log, and which of them are shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from rich.text import Text

LEVELS = ("debug", "info", "warning", "error")
KEPT = 5000
STYLES = {"warning": "bold", "error": "bold reverse", "gap": "bold"}
GAP = "gap"
"""The level of the line that stands where records may be missing; it is shown with every level."""


class Record(msgspec.Struct, frozen=True):
    """A line of the log, as ``GET /llmd/logs`` tells it."""

    time: str
    level: str
    event: str
    model: str | None = None
    fields: Mapping[str, Any] = {}
    number: int = 0
    """Rises by one from record to record of one daemon."""

    @property
    def text(self) -> str:
        """The record in one line."""
        if self.level == GAP:
            return f"--- {self.event} ---"
        who = f" {self.model}" if self.model else ""
        said = {name: value for name, value in self.fields.items() if value is not None and value != ""}
        rest = "".join(f" {name}={value}" for name, value in said.items())
        return f"{self.time[11:23]} {self.level}{who} {self.event}{rest}"

    @property
    def line(self) -> Text:
        """The record as it is shown."""
        return Text(self.text, STYLES.get(self.level, ""), no_wrap=False)


MISSING = Record("", GAP, "Records may be missing: the daemon was restarted, or dropped some.")


class Records:
    """The newest records, and a choice of them."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=KEPT)
        self.level = "info"
        """The lowest level that is shown."""
        self.wanted = ""
        """Only records with this text are shown."""
        self._last: Record | None = None
        """The newest record of the daemon."""

    def received(self, record: Record) -> Sequence[Record]:
        """Keep a record of a stream that may begin with known ones; return what is shown of it.

        Where records may be missing before it, `MISSING` is kept too.
        """
        last = self._last
        if last is not None and record.time <= last.time and record.number <= last.number:
            return []
        self._last = record
        # The numbers of another daemon begin at one again.
        follows = last is None or record.number == last.number + 1
        return self.add([record] if follows else [MISSING, record])

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
