"""The sending end of one direction of a link."""

from __future__ import annotations

import contextlib
import mmap
import socket
import threading
import time

from llmd.api.errors import LinkError, LinkTimeoutError
from llmd_transport.records import RECORD
from llmd_transport.ring_space import RingSpace
from llmd_transport.waiting import closed_error, is_ready

MAX_FRAMES = 64
"""Most frames that the peer has not released. Their records fit the buffers of a socket."""


class Sender:
    """Writes frames to shared memory, and tells the peer where they lie.

    ``sock`` sends a `RECORD` for each frame, and receives a byte for each frame that the peer has released.
    """

    def __init__(self, sock: socket.socket, memory: mmap.mmap) -> None:
        self._socket = sock
        self._memory = memoryview(memory)
        self._space = RingSpace(len(memory))
        self._reserved: tuple[int, memoryview] | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def reserve(self, num_bytes: int, timeout_s: float) -> memoryview:
        """See `llmd.api.Link.reserve`."""
        if num_bytes > len(self._memory):
            raise LinkError(
                f"a frame of {num_bytes} bytes exceeds the {len(self._memory)} bytes of the link's memory",
                hint="send it in several frames",
            )
        deadline = time.monotonic() + timeout_s
        with self._lock:
            self._reserved = None
            begin = self._place(num_bytes)
            while begin is None:
                if not is_ready(self._socket, deadline):
                    raise LinkTimeoutError(
                        f"the peer read none of {len(self._space)} frames within {timeout_s:g} s",
                        hint="the peer is stuck or slower than expected; give it more time",
                    )
                begin = self._place(num_bytes)
            self._reserved = begin, self._memory[begin : begin + num_bytes]
            return self._reserved[1]

    def commit(self, num_bytes: int) -> None:
        """See `llmd.api.Link.commit`."""
        with self._lock:
            if self._reserved is None or not 0 <= num_bytes <= self._reserved[1].nbytes:
                reserved = "none" if self._reserved is None else f"{self._reserved[1].nbytes} bytes"
                raise ValueError(f"a frame of {num_bytes} bytes is committed, but {reserved} are reserved")
            self._check_open()
            begin, _ = self._reserved
            try:
                self._socket.send(RECORD.pack(begin, num_bytes), socket.MSG_DONTWAIT)
            except OSError as error:
                raise closed_error() from error
            self._space.add(begin, num_bytes)
            self._reserved = None

    def shut_down(self) -> None:
        """Wake whoever waits, here and at the peer."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the socket, after `shut_down`."""
        with self._lock:
            self._is_closed = True
            self._socket.close()

    def _place(self, num_bytes: int) -> int | None:
        """Return where a frame can begin, now that the peer may have released others."""
        self._check_open()
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    released = self._socket.recv(1, socket.MSG_DONTWAIT)
                except ConnectionResetError as error:
                    raise closed_error() from error
                if not released:
                    raise closed_error()
                self._space.free_oldest()
        return self._space.place(num_bytes) if len(self._space) < MAX_FRAMES else None

    def _check_open(self) -> None:
        if self._is_closed:
            raise closed_error()
