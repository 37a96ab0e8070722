"""A server that sends what a test wrote, in the portions that it wants."""

from __future__ import annotations

import contextlib
import fcntl
import re
import socket
import struct
import termios
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

Portions = Sequence[bytes]


class ScriptedServer:
    """Answers each connection on a Unix socket with the next reply, and closes it.

    Between two portions it waits until the client has read the first, so that a reply is split exactly there.
    ``keep_open``: connections stay open until the test is over. ``reads``: requests are read before they are
    answered.
    """

    def __init__(
        self, socket_path: Path, replies: Sequence[Portions], *, keep_open: bool, reads: bool
    ) -> None:
        self.requests: list[bytes] = []
        self.address = f"unix:{socket_path}"
        self._replies = replies
        self._keep_open = keep_open
        self._reads = reads
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(socket_path))
        self._listener.listen()
        self._path = socket_path
        self._is_over = False
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run, name="scripted server")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over = True
        with socket.socket(socket.AF_UNIX) as last:  # wakes the thread
            last.connect(str(self._path))
            self._thread.join()
        self._listener.close()
        for connection in self._held:
            connection.close()

    def _run(self) -> None:
        replies = iter(self._replies)
        while True:
            connection, _ = self._listener.accept()
            self._held.append(connection)
            if self._is_over:
                return
            request = self._request(connection)
            if not request and self._reads:  # `llmd_connect` only looks whether somebody listens
                continue
            self.requests.append(request)
            _send(connection, next(replies, ()))
            if not self._keep_open:
                connection.close()

    def _request(self, connection: socket.socket) -> bytes:
        if not self._reads:
            return b""
        request = b""
        while not _is_whole(request):
            portion = connection.recv(65536)
            if not portion:
                break
            request += portion
        return request


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    return bool(end) and len(body) == (int(length[1]) if length else 0)


def _send(connection: socket.socket, portions: Portions) -> None:
    """Send portions, each when the client has read those before; stop if it has gone."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for place, portion in enumerate(portions):
            while place > 0 and _unread(connection):
                pass
            connection.sendall(portion)


def _unread(connection: socket.socket) -> int:
    """How much of what was sent the client has not read."""
    unread: tuple[int] = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0\0\0\0"))
    return unread[0]


@contextlib.contextmanager
def scripted(
    folder: Path, *replies: Portions, keep_open: bool = False, reads: bool = True
) -> Iterator[ScriptedServer]:
    """Serve replies, one for each request, until the block ends."""
    server = ScriptedServer(folder / "scripted.sock", replies, keep_open=keep_open, reads=reads)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A reply with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*portions: bytes) -> bytes:
    """A reply in chunks."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(portion), portion) for portion in portions)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + body + b"0\r\n\r\n"


def events(*data: str, end: bool = True) -> bytes:
    """A stream of events, in one chunk each."""
    return chunked(*(f"data: {one}\n\n".encode() for one in (*data, *(["[DONE]"] if end else []))))
