"""Addresses ``local://NAME`` of this machine: Unix sockets of Linux's abstract namespace, which leave no
file.

Who connects makes the link, and hands the descriptors of the other end over the socket. Only processes of the
same user are accepted, and connected to.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import struct
import threading
import time

from llmd.api.errors import LinkClosedError, LinkError, LinkTimeoutError
from llmd.api.transport import Link
from llmd_transport.shared_memory_link import NUM_DESCRIPTORS, SharedMemoryLink, new_link
from llmd_transport.waiting import is_ready

SCHEME = "local"
PREFIX = "\0llmd-local/"
GREETING = b"llmd-local 1"
MAX_WAITING_LINKS = 16
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group."""
_TIME = struct.Struct("ll")
"""Seconds and microseconds."""


class LocalListener:
    """Accepts links at one name (`llmd.api.Listener`)."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.address = address
        self._socket = sock
        self._is_closed = False
        self._lock = threading.Lock()

    def accept(self, timeout_s: float) -> Link:
        deadline = time.monotonic() + timeout_s
        with self._lock:
            while True:
                if self._is_closed:
                    raise self._closed_error()
                if not is_ready(self._socket, deadline):
                    raise LinkTimeoutError(
                        f"{self.address}: no peer connected within {timeout_s:g} s",
                        hint="check that the peer was started, or give it more time",
                    )
                try:
                    peer, _ = self._socket.accept()
                except OSError as error:
                    raise self._closed_error() from error
                with peer:
                    if link := _received_link(peer, deadline):
                        return link

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in `accept`
        with self._lock:
            self._is_closed = True
            self._socket.close()

    def _closed_error(self) -> LinkClosedError:
        return LinkClosedError(f"the listener {self.address} is closed", hint="listen again")


def listen(address: str) -> LocalListener:
    """Listen at an address; ``local://`` without a name picks a free one."""
    name = _name(address) or secrets.token_hex(16)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.bind(PREFIX + name)
        sock.listen(MAX_WAITING_LINKS)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            hint = "close that listener or use another name"
            raise LinkError(f"{address} already has a listener", hint=hint) from error
        raise LinkError(f"cannot listen at {address}: {error}", hint="use a shorter name") from error
    return LocalListener(sock, f"{SCHEME}://{name}")


def connect(address: str, timeout_s: float) -> Link:
    """Connect to a listener of this machine. The link can be used before it is accepted."""
    name = _name(address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        # Zero would be no limit. A non-blocking socket would not wait at all.
        limit = _TIME.pack(*divmod(max(1, int(1e6 * timeout_s)), 1_000_000))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        try:
            sock.connect(PREFIX + name)
        except BlockingIOError as error:
            raise LinkTimeoutError(
                f"{address}: its listener accepted none of {MAX_WAITING_LINKS} links in {timeout_s:g} s",
                hint="the listener is stuck or slower than expected; give it more time",
            ) from error
        except OSError as error:
            hint = "listen before connecting, on the same machine and in the same network namespace"
            raise LinkError(f"nothing listens at {address}", hint=hint) from error
        if not _is_mine(sock):
            raise LinkError(f"another user listens at {address}", hint="use another name")
        with new_link() as (link, descriptors):
            try:
                socket.send_fds(sock, [GREETING], descriptors)
            except OSError as error:
                link.close()
                raise LinkError(f"nothing listens at {address} any more", hint="listen again") from error
            return link


def _received_link(peer: socket.socket, deadline: float) -> Link | None:
    """Return the link that a peer hands over; None if it is no peer of ours."""
    if not _is_mine(peer) or not is_ready(peer, deadline):
        return None
    greeting, descriptors, *_ = socket.recv_fds(peer, len(GREETING), NUM_DESCRIPTORS)
    if greeting != GREETING or len(descriptors) != NUM_DESCRIPTORS:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return SharedMemoryLink.of(descriptors)


def _is_mine(sock: socket.socket) -> bool:
    """Whether the peer runs as the same user."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(credentials)[1] == os.geteuid())


def _name(address: str) -> str:
    scheme, separator, name = address.partition("://")
    if scheme != SCHEME or not separator:
        raise LinkError(f"{address!r} is not an address of this transport", hint=f"write {SCHEME}://NAME")
    return name
