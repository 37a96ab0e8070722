"""Links within one process at addresses ``local://NAME``; frames pass through bounded queues in memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

from llmd.api import LinkError, Transport, hookimpl
from llmd.api.transport import Frame, Link, Listener
from llmd_transport.channel import Channel

LLMD_API = 2
SCHEME = "local"
MAX_FRAMES = 16
"""Maximum frames in flight in one direction; `LocalLink.reserve` waits if there are more."""
MAX_WAITING_LINKS = 16


class LocalLink:
    """One end of a link (`llmd.api.Link`). The receiver reads the buffer that the sender wrote."""

    def __init__(self, outgoing: Channel[memoryview], incoming: Channel[memoryview]) -> None:
        self._outgoing = outgoing
        self._incoming = incoming
        self._reserved: memoryview | None = None

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        self._outgoing.wait_for_room(timeout_s)
        self._reserved = memoryview(bytearray(num_bytes))
        return self._reserved

    def commit(self, num_bytes: int) -> None:
        if self._reserved is None or not 0 <= num_bytes <= self._reserved.nbytes:
            reserved = "none" if self._reserved is None else f"{self._reserved.nbytes} bytes"
            raise ValueError(f"a frame of {num_bytes} bytes is committed, but {reserved} are reserved")
        frame, self._reserved = self._reserved[:num_bytes], None
        self._outgoing.put(frame, 0.0)

    def receive(self, timeout_s: float) -> Frame:
        return Frame(self._incoming.get(timeout_s))

    def close(self) -> None:
        self._outgoing.close()
        self._incoming.close()


class LocalListener:
    """Accepts links at one name (`llmd.api.Listener`)."""

    def __init__(self, network: LocalNetwork, address: str) -> None:
        self.address = address
        self._network = network
        self._waiting: Channel[LocalLink] = Channel(f"listener {address}", MAX_WAITING_LINKS)

    def accept(self, timeout_s: float) -> Link:
        return self._waiting.get(timeout_s)

    def offer(self, link: LocalLink, timeout_s: float) -> None:
        """Queue the far end of a new link."""
        self._waiting.put(link, timeout_s)

    def close(self) -> None:
        self._network.forget(self)
        for link in self._waiting.drain():
            link.close()


class LocalNetwork:
    """The listeners by name. Each plugin host has its own network, so two hosts in a process are separate."""

    def __init__(self) -> None:
        self._listeners: dict[str, LocalListener] = {}
        self._lock = threading.Lock()
        self._unnamed = itertools.count(1)

    def listen(self, address: str) -> Listener:
        """Listen at an address; ``local://`` without a name picks a free one."""
        name = self._name(address) or f"unnamed-{next(self._unnamed)}"
        with self._lock:
            if name in self._listeners:
                raise LinkError(
                    f"{address} already has a listener", hint="close that listener or use another name"
                )
            listener = LocalListener(self, f"{SCHEME}://{name}")
            self._listeners[name] = listener
        return listener

    def connect(self, address: str, timeout_s: float) -> Link:
        """Connect to a listener in this process. The link can be used before it is accepted."""
        with self._lock:
            listener = self._listeners.get(self._name(address))
        if listener is None:
            raise LinkError(
                f"nothing listens at {address}", hint="listen before connecting, in the same process"
            )
        there, back = (Channel[memoryview](f"link {address}", MAX_FRAMES) for _ in range(2))
        listener.offer(LocalLink(back, there), timeout_s)
        return LocalLink(there, back)

    def forget(self, listener: LocalListener) -> None:
        """Free the name of a listener."""
        name = self._name(listener.address)
        with self._lock:
            if self._listeners.get(name) is listener:
                del self._listeners[name]

    def _name(self, address: str) -> str:
        scheme, separator, name = address.partition("://")
        if scheme != SCHEME or not separator:
            raise LinkError(f"{address!r} is not an address of this transport", hint=f"write {SCHEME}://NAME")
        return name


@hookimpl
def llmd_transports() -> Sequence[Transport]:
    network = LocalNetwork()
    return [Transport(SCHEME, connect=network.connect, listen=network.listen)]
