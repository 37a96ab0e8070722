"""The receiving end of one direction of a link."""

from __future__ import annotations

import contextlib
import mmap
import socket
import threading
import time
from collections import deque

from llmd.api.errors import LinkError, LinkTimeoutError
from llmd.api.transport import Frame
from llmd_transport.records import RECORD, RELEASED
from llmd_transport.waiting import closed_error, is_ready


class Receiver:
    """Hands out frames where the peer wrote them."""

    def __init__(self, sock: socket.socket, memory: mmap.mmap) -> None:
        self._socket = sock
        self._memory = memoryview(memory)
        self._left: deque[bytes] = deque()
        self._is_closed = False
        self._lock = threading.Lock()
        self._releasing = threading.Lock()

    def receive(self, timeout_s: float) -> Frame:
        """See `llmd.api.Link.receive`."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            while (record := self._next_record()) is None:
                if not is_ready(self._socket, deadline):
                    raise LinkTimeoutError(
                        f"nothing arrived within {timeout_s:g} s",
                        hint="the peer is stuck or slower than expected; give it more time",
                    )
        begin, num_bytes = RECORD.unpack(record)
        if begin + num_bytes > len(self._memory):
            raise LinkError("the peer sent a frame outside the link's memory", hint="connect again")
        return Frame(self._memory[begin : begin + num_bytes], self._release)

    def shut_down(self) -> None:
        """Wake whoever waits, here and at the peer."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the socket, after `shut_down`. Frames that have arrived can still be received."""
        with self._lock, self._releasing:
            while not self._is_closed and (record := self._receive_record()):
                self._left.append(record)
            self._is_closed = True
            self._socket.close()

    def _next_record(self) -> bytes | None:
        """Return the record of the next frame, None if none has arrived yet."""
        if self._is_closed and self._left:
            return self._left.popleft()
        record = b"" if self._is_closed else self._receive_record()
        if record == b"":
            raise closed_error()
        return record

    def _receive_record(self) -> bytes | None:
        """Return the next record of the socket, None if there is none yet, nothing if the link is closed."""
        while True:
            try:
                return self._socket.recv(RECORD.size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except ConnectionResetError:
                continue  # the peer has ended; what it sent before can still be read

    def _release(self) -> None:
        with self._releasing, contextlib.suppress(OSError):  # a peer that is gone needs no room
            self._socket.send(RELEASED, socket.MSG_DONTWAIT)
