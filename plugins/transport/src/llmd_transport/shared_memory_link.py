"""A link through shared memory (`llmd.api.Link`).

Each direction has a buffer, which both processes map, and a pair of connected sockets. Frames lie in the
buffer; the sockets carry 16 bytes for each frame and one for its release, wake whoever waits, and show that
the peer has closed the link or was killed. Nothing has a name, so the system frees everything when both
processes have ended, however they end.
"""

from __future__ import annotations

import mmap
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Self

from llmd.api.transport import Frame
from llmd_transport.receiver import Receiver
from llmd_transport.sender import Sender

BUFFER_BYTES = 1 << 30
"""Size of the buffer of each direction, and the largest frame. Only what frames have used takes memory."""

NUM_DESCRIPTORS = 4
"""Descriptors of one end: the buffer and the socket that it sends with, then those that it receives with."""


class SharedMemoryLink:
    """One end of a link. Frames are written and read where they lie in the shared memory."""

    def __init__(self, sender: Sender, receiver: Receiver) -> None:
        self._sender = sender
        self._receiver = receiver

    @classmethod
    def of(cls, descriptors: list[int]) -> Self:
        """Return the end with these `NUM_DESCRIPTORS` descriptors, which it owns from now on."""
        out_buffer, out_socket, in_buffer, in_socket = descriptors
        sender = Sender(socket.socket(fileno=out_socket), _mapped(out_buffer))
        return cls(sender, Receiver(socket.socket(fileno=in_socket), _mapped(in_buffer)))

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        return self._sender.reserve(num_bytes, timeout_s)

    def commit(self, num_bytes: int) -> None:
        self._sender.commit(num_bytes)

    def receive(self, timeout_s: float) -> Frame:
        return self._receiver.receive(timeout_s)

    def close(self) -> None:
        for end in (self._sender, self._receiver):
            end.shut_down()
        for end in (self._sender, self._receiver):
            end.close()


@contextmanager
def new_link() -> Iterator[tuple[SharedMemoryLink, list[int]]]:
    """Yield one end of a new link, and the descriptors of the other, which are closed at the end."""
    with ExitStack() as stack:
        mine, theirs = [], []
        for _ in range(2):
            buffer = os.memfd_create("llmd-link")
            stack.callback(os.close, buffer)
            os.ftruncate(buffer, BUFFER_BYTES)
            near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(far)
            mine += [os.dup(buffer), near.detach()]
            theirs += [buffer, far.fileno()]
        yield SharedMemoryLink.of(mine), theirs[2:] + theirs[:2]


def _mapped(buffer: int) -> mmap.mmap:
    """Map a buffer and close its descriptor; the memory stays until the last view of it is gone."""
    try:
        return mmap.mmap(buffer, os.fstat(buffer).st_size)
    finally:
        os.close(buffer)
