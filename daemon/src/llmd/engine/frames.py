"""Messages of `llmd.api.messages` as frames: 4-byte little-endian length, then msgpack."""

from __future__ import annotations

import struct
from typing import Generic, TypeVar

import msgspec

from llmd.api.errors import LlmdError

_LENGTH = struct.Struct("<I")
MAX_FRAME_BYTES = 1 << 28

Message = TypeVar("Message")


class FrameError(LlmdError):
    """The peer sent something that is no frame of ours."""


def encode_frame(message: msgspec.Struct) -> bytes:
    """Return one message as a frame."""
    body = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(body)) + body


class FrameDecoder(Generic[Message]):
    """Bytes in, messages out; keeps what is not yet a whole frame. ``message_type`` is a union of structs."""

    def __init__(self, message_type: type[Message]) -> None:
        self._decoder = msgspec.msgpack.Decoder(message_type)
        self._buffer = bytearray()

    def feed(self, received: bytes) -> list[Message]:
        """Add received bytes; return the messages that are now whole.

        Raises:
            FrameError: the bytes are no frames.
        """
        self._buffer += received
        messages: list[Message] = []
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a frame of {length} bytes, at most {MAX_FRAME_BYTES} are sent")
            end = at + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.append(self._decode(bytes(self._buffer[at + _LENGTH.size : end])))
            at = end
        del self._buffer[:at]
        return messages

    def _decode(self, body: bytes) -> Message:
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise FrameError(f"a frame that cannot be read: {error}") from error
