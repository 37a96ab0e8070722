"""Streams of server-sent events as a client's parser cuts them."""

from __future__ import annotations

from msgspec import Struct


class Event(Struct, frozen=True):
    """One event; ``name`` is that of its ``event:`` line."""

    name: str | None
    data: str


def events(content: bytes) -> list[Event]:
    """The events of a whole stream; comments are left out."""
    found = []
    for block in content.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            fields = dict(line.split(": ", 1) for line in lines)
            found.append(Event(fields.get("event"), fields["data"]))
    return found
