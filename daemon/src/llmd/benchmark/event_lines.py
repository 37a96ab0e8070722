"""Server-sent events out of bytes as they come."""

from __future__ import annotations

DATA = b"data:"


class EventLines:
    """Keeps what is not a whole line yet. Comments and other fields than ``data`` are passed over."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, content: bytes) -> list[bytes]:
        """The data of each event that is complete now; every server that is measured writes one line for each."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [line[len(DATA) :].strip() for line in lines if line.startswith(DATA)]
