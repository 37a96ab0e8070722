"""Links between processes and machines, implemented by transport plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview
"""Bytes to send."""


class Frame:
    """A received frame, in a buffer that the link may use again after `release`.

    As a context manager it gives ``data`` and releases the frame at the end. Arrays and views of the data
    must not be used after that: copy what is kept.
    """

    def __init__(self, data: memoryview, on_release: Callable[[], None] = lambda: None) -> None:
        """``on_release`` is called once, when the link may use the buffer again."""
        self.data = data.toreadonly()
        """Bytes of the frame, read-only. After `release`, reading them raises ``ValueError``."""
        self._on_release = on_release
        self._is_released = False

    def release(self) -> None:
        """Return the buffer to the link. Releasing twice is allowed."""
        if not self._is_released:
            self._is_released = True
            self.data.release()
            self._on_release()

    def __enter__(self) -> memoryview:
        return self.data

    def __exit__(self, *_: object) -> None:
        self.release()


class Link(Protocol):
    """A two-way, ordered, reliable connection that carries frames of bytes.

    Both sides use buffers of the link, so that it can carry frames without copying them. One thread may send
    while another receives. A frame arrives whole or not at all.
    """

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        """Wait until there is room for a frame of ``num_bytes``; return a buffer of that size to write it to.

        A reservation that was not committed is dropped by the next one.

        Raises:
            LinkClosedError: either side closed the link.
            LinkTimeoutError: the peer took too few of the earlier frames in time.
            LinkError: a frame of this size exceeds what the link can carry.
        """
        ...

    def commit(self, num_bytes: int) -> None:
        """Send the first ``num_bytes`` of the reserved buffer as one frame, without waiting for the peer.

        The buffer belongs to the link from now on.

        Raises:
            LinkClosedError: either side closed the link.
            ValueError: no buffer of that size is reserved.
        """
        ...

    def receive(self, timeout_s: float) -> Frame:
        """Return the next frame. Frames are released in the order in which they were received.

        The peer may have to wait until they are. A frame stays valid when the link is closed.

        Raises:
            LinkClosedError: the link is closed and all frames that were sent before have been received.
            LinkTimeoutError: no frame arrived in time.
        """
        ...

    def close(self) -> None:
        """Close both directions. Closing twice is allowed."""
        ...


def send(link: Link, parts: Sequence[Buffer], timeout_s: float) -> None:
    """Copy finished parts, in order, to one frame and send it. The caller may reuse them when this returns.

    Raises:
        LinkError: as `Link.reserve` and `Link.commit`; nothing was sent.
    """
    num_bytes = sum(memoryview(part).nbytes for part in parts)
    frame = link.reserve(num_bytes, timeout_s)
    start = 0
    for part in parts:
        source = memoryview(part).cast("B")
        frame[start : start + source.nbytes] = source
        start += source.nbytes
    link.commit(num_bytes)


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
