"""Parses server-sent events from a byte stream."""

from __future__ import annotations

DATA = b"data:"


class EventLines:
    """Buffers incomplete lines. Comments and fields other than ``data`` are ignored."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, content: bytes) -> list[bytes]:
        """Return the data of each complete event. Every measured server writes one line per event."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [line[len(DATA) :].strip() for line in lines if line.startswith(DATA)]
