"""The service manager's side of its protocols: a socket that receives what a daemon notifies."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT_S = 20.0


class Notifications:
    """What has been received, message by message."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.address = address
        """For ``NOTIFY_SOCKET``."""
        self._socket = sock

    def next(self) -> dict[str, str]:
        """Wait for the next message."""
        lines = self._socket.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until(self, name: str) -> dict[str, str]:
        """Skip messages up to the next one with this variable."""
        while name not in (message := self.next()):
            pass
        return message

    def waiting(self) -> list[dict[str, str]]:
        """Return what has arrived so far."""
        found = []
        self._socket.setblocking(False)
        try:
            while True:
                found.append(self.next())
        except BlockingIOError:
            return found
        finally:
            self._socket.settimeout(LIMIT_S)


@contextmanager
def notifications(address: str) -> Iterator[Notifications]:
    """Listen at a path, or at ``@NAME`` in the abstract namespace."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        sock.settimeout(LIMIT_S)
        yield Notifications(sock, address)
