"""Links between processes and machines, implemented by transport plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview
"""Bytes to send."""


class Link(Protocol):
    """A two-way, ordered, reliable connection that carries frames of bytes.

    One thread may send while another receives. A frame arrives whole or not at all.
    """

    def send(self, parts: Sequence[Buffer], timeout_s: float) -> None:
        """Send the parts, in order, as one frame. The caller may reuse the buffers when this returns.

        Raises:
            LinkClosedError: either side closed the link.
            LinkTimeoutError: the peer did not take the frame in time; nothing was sent.
        """
        ...

    def receive(self, timeout_s: float) -> memoryview:
        """Return the next frame, owned by the caller.

        Raises:
            LinkClosedError: the link is closed and all frames that were sent before have been received.
            LinkTimeoutError: no frame arrived in time.
        """
        ...

    def close(self) -> None:
        """Close both directions. Closing twice is allowed."""
        ...


class Listener(Protocol):
    """Accepts links at an address."""

    @property
    def address(self) -> str:
        """The address that peers connect to, scheme included."""
        ...

    def accept(self, timeout_s: float) -> Link:
        """Return the next link.

        Raises:
            LinkClosedError: the listener was closed.
            LinkTimeoutError: no peer connected in time.
        """
        ...

    def close(self) -> None:
        """Stop listening; accepted links stay open. Closing twice is allowed."""
        ...
