"""Typed messages over one end of a socket pair."""

from __future__ import annotations

import select
import socket
from typing import Generic

import msgspec

from llmd.process.frames import FrameDecoder, Message, encode_frame

_RECEIVE_BYTES = 1 << 18


class Channel(Generic[Message]):
    """Sends and receives frames, blocking. Use it from one thread at a time."""

    def __init__(self, sock: socket.socket, message_type: type[Message]) -> None:
        """``message_type`` is the union of the messages that the peer sends."""
        self._socket = sock
        self._decoder = FrameDecoder(message_type)
        self._early: list[Message] = []
        # select() refuses descriptors from 1024 on, which a daemon with many clients passes to its children.
        self._incoming = select.poll()
        self._incoming.register(sock, select.POLLIN)
        self.closed = False
        """Whether the peer has closed its end."""

    def send(self, message: msgspec.Struct) -> None:
        self._socket.sendall(encode_frame(message))

    def receive(self, *, wait: bool) -> list[Message]:
        """Return the messages that have arrived.

        With ``wait``, return at least one, or none once the peer has closed its end.
        """
        messages, self._early = self._early, []
        while not self.closed and (self._incoming.poll(0) or (wait and not messages)):
            received = self._socket.recv(_RECEIVE_BYTES)
            self.closed = not received
            messages += self._decoder.feed(received)
        return messages

    def receive_first(self) -> Message | None:
        """Wait for one message and keep the others for `receive`; None once the peer has closed its end."""
        messages = self.receive(wait=True)
        self._early = messages[1:]
        return messages[0] if messages else None

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something to receive, for at most ``timeout_s`` seconds."""
        self._incoming.poll(timeout_s * 1e3)
