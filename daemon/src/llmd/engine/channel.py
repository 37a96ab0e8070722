"""The engine's end of the socket pair."""

from __future__ import annotations

import select
import socket
from typing import cast

import msgspec

from llmd.api.messages import FromEngine, ToEngine
from llmd.engine.frames import FrameDecoder, encode_frame

_RECEIVE_BYTES = 1 << 18


class Channel:
    """Blocking frames in both directions; used by the loop thread alone."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._decoder: FrameDecoder[ToEngine] = FrameDecoder(cast("type[ToEngine]", ToEngine))
        self._early: list[ToEngine] = []
        # select() refuses descriptors from 1024 on; a front with many clients hands such a one down.
        self._incoming = select.poll()
        self._incoming.register(sock, select.POLLIN)
        self.closed = False

    def send(self, message: FromEngine) -> None:
        self._socket.sendall(encode_frame(cast("msgspec.Struct", message)))

    def receive(self, *, wait: bool) -> list[ToEngine]:
        """Return what has come; with ``wait``, at least one message, or nothing once the front has gone."""
        messages, self._early = self._early, []
        while not self.closed and (self._incoming.poll(0) or (wait and not messages)):
            received = self._socket.recv(_RECEIVE_BYTES)
            self.closed = not received
            messages += self._decoder.feed(received)
        return messages

    def receive_first(self) -> ToEngine | None:
        """Return the first message and keep the others for `receive`; None where the front has gone."""
        messages = self.receive(wait=True)
        self._early = messages[1:]
        return messages[0] if messages else None
