"""Messages over one end of a socket pair."""

from __future__ import annotations

import select
import socket
from typing import Generic, cast

import msgspec

from llmd.api.messages import FromFront
from llmd.engine.frames import FrameDecoder, Message, encode_frame

_RECEIVE_BYTES = 1 << 18


class Channel(Generic[Message]):
    """Blocking frames in both directions, of ``message_type`` on their way in; used by one thread alone."""

    def __init__(self, sock: socket.socket, message_type: type[Message]) -> None:
        self._socket = sock
        self._decoder = FrameDecoder(message_type)
        self._early: list[Message] = []
        # select() refuses descriptors from 1024 on; a front with many clients hands such a one down.
        self._incoming = select.poll()
        self._incoming.register(sock, select.POLLIN)
        self.closed = False

    def send(self, message: msgspec.Struct) -> None:
        self._socket.sendall(encode_frame(message))

    def receive(self, *, wait: bool) -> list[Message]:
        """Return what has come; with ``wait``, at least one message, or nothing once the peer has gone."""
        messages, self._early = self._early, []
        while not self.closed and (self._incoming.poll(0) or (wait and not messages)):
            received = self._socket.recv(_RECEIVE_BYTES)
            self.closed = not received
            messages += self._decoder.feed(received)
        return messages

    def receive_first(self) -> Message | None:
        """Return the first message and keep the others for `receive`; None where the peer has gone."""
        messages = self.receive(wait=True)
        self._early = messages[1:]
        return messages[0] if messages else None

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something to receive, at most so long."""
        self._incoming.poll(timeout_s * 1e3)


def engine_end(sock: socket.socket) -> Channel[FromFront]:
    """The engine's end of what the front and it say to each other."""
    return Channel(sock, cast("type[FromFront]", FromFront))
