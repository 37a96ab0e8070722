"""What a recording holds, and how it is stored: a JSON object a line, compressed."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from llmd.api.decoding import prepared


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a daemon sent; exactly one of ``event``, ``path`` and ``stream`` is set."""

    at_s: float
    """Seconds since the recording began; for a piece of a stream, since the stream began."""
    event: Mapping[str, Any] | None = None
    """The fields of an event."""
    path: str = ""
    """The path that ``answer`` answers."""
    stream: str = ""
    """The path of a stream that ``answer`` is a piece of."""
    answer: Mapping[str, Any] = {}


class Recording(msgspec.Struct, frozen=True):
    """A recording. Events and answers are in the order of their times."""

    events: tuple[Entry, ...]
    answers: tuple[Entry, ...]
    pieces: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Sort entries by what they are."""
        known = list(entries)
        return cls(
            tuple(one for one in known if one.event is not None),
            tuple(one for one in known if one.path),
            tuple(one for one in known if one.stream),
        )

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a recording."""
        lines = gzip.decompress(file.read_bytes()).splitlines()
        return cls.of(msgspec.json.decode(line, type=prepared(Entry)) for line in lines)

    @property
    def length_s(self) -> float:
        """Seconds of the recording, until its last event."""
        return self.events[-1].at_s if self.events else 0.0

    def answer(self, path: str, at_s: float) -> Mapping[str, Any] | None:
        """Return the last answer of a path before a time, else the first one; None if there is none."""
        known = [one for one in self.answers if one.path == path]
        before = [one for one in known if one.at_s <= at_s]
        found = before[-1:] or known[:1]
        return found[0].answer if found else None


def write(entries: Iterable[Entry], file: Path) -> None:
    """Write a recording."""
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in entries)
    file.write_bytes(gzip.compress(lines, mtime=0))
