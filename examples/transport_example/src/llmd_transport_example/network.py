"""Links and listeners at ``example://NAME``."""

from __future__ import annotations

import itertools
import threading

from llmd.api import LinkError
from llmd.api.transport import Frame, Link, Listener
from llmd_transport_example.mailbox import Mailbox
from llmd_transport_example.plugin import SCHEME

MAX_FRAMES = 16
"""Frames in flight in one direction; `reserve` waits if there are more."""
MAX_WAITING_LINKS = 16


class ExampleLink:
    """One end of a link."""

    def __init__(self, outgoing: Mailbox[memoryview], incoming: Mailbox[memoryview]) -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self._reserved: memoryview | None = None

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        self._outgoing.wait_for_room(timeout_s)
        self._reserved = memoryview(bytearray(num_bytes))
        return self._reserved

    def commit(self, num_bytes: int) -> None:
        if self._reserved is None or not 0 <= num_bytes <= self._reserved.nbytes:
            raise ValueError(f"a frame of {num_bytes} bytes is committed, but no such buffer is reserved")
        frame, self._reserved = self._reserved[:num_bytes], None
        self._outgoing.put(frame)

    def receive(self, timeout_s: float) -> Frame:
        return Frame(self._incoming.get(timeout_s))

    def close(self) -> None:
        self._outgoing.close()
        self._incoming.close()


class ExampleListener:
    """Accepts links at one address."""

    def __init__(self, network: ExampleNetwork, address: str) -> None:
        self.address = address
        self._network = network
        self.waiting: Mailbox[ExampleLink] = Mailbox(MAX_WAITING_LINKS)

    def accept(self, timeout_s: float) -> Link:
        return self.waiting.get(timeout_s)

    def close(self) -> None:
        self._network.forget(self.address)
        self.waiting.close()


class ExampleNetwork:
    """The listeners of this process by address."""

    def __init__(self) -> None:
        self._listeners: dict[str, ExampleListener] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def listen(self, address: str) -> Listener:
        """Listen at an address.

        Raises:
            LinkError: it is taken, or has another scheme.
        """
        name = _name(address) or f"unnamed-{next(self._numbers)}"
        full = f"{SCHEME}://{name}"
        with self._lock:
            if full in self._listeners:
                raise LinkError(f"{full} already has a listener", hint="use another name")
            self._listeners[full] = ExampleListener(self, full)
            return self._listeners[full]

    def connect(self, address: str, timeout_s: float) -> Link:
        """Connect to a listener.

        Raises:
            LinkError: nothing listens there, or too many links wait to be accepted.
        """
        with self._lock:
            listener = self._listeners.get(f"{SCHEME}://{_name(address)}")
        if listener is None:
            raise LinkError(f"nothing listens at {address}", hint="listen before connecting")
        there, back = (Mailbox[memoryview](MAX_FRAMES) for _ in range(2))
        listener.waiting.wait_for_room(timeout_s)
        listener.waiting.put(ExampleLink(back, there))
        return ExampleLink(there, back)

    def forget(self, address: str) -> None:
        """Free an address."""
        with self._lock:
            self._listeners.pop(address, None)


NETWORK = ExampleNetwork()


def _name(address: str) -> str:
    scheme, separator, name = address.partition("://")
    if scheme != SCHEME or not separator:
        raise LinkError(f"{address!r} is not an address of this transport", hint=f"write {SCHEME}://NAME")
    return name
