"""Frames: a 4-byte little-endian length, then the payload, usually msgpack."""

from __future__ import annotations

import struct
from typing import IO, Generic, TypeVar

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError

_LENGTH = struct.Struct("<I")
HEADER_BYTES = _LENGTH.size
MAX_FRAME_BYTES = 1 << 28

Message = TypeVar("Message")


class FrameError(LlmdError):
    """The peer sent something that is not a frame, or not a message of the expected type."""


def frame(payload: bytes) -> bytes:
    """Return a payload as a frame."""
    return _LENGTH.pack(len(payload)) + payload


def encode_frame(message: msgspec.Struct) -> bytes:
    """Return a message as a frame."""
    return frame(msgspec.msgpack.encode(message))


def payload_length(header: bytes) -> int:
    """Return the length of the payload that follows a header of `HEADER_BYTES`."""
    (length,) = _LENGTH.unpack(header)
    return int(length)


def read_payload(stream: IO[bytes]) -> bytes | None:
    """Read the payload of the next frame of a blocking stream; None at its end."""
    header = stream.read(HEADER_BYTES)
    return stream.read(payload_length(header)) if header else None


class FrameDecoder(Generic[Message]):
    """Decodes received bytes to messages and keeps an incomplete frame until the rest arrives."""

    def __init__(self, message_type: type[Message]) -> None:
        """``message_type`` is a struct or a union of structs."""
        self._decoder = msgspec.msgpack.Decoder(prepared(message_type))
        self._buffer = bytearray()

    def feed(self, received: bytes) -> list[Message]:
        """Add received bytes; return the messages that are now complete.

        Raises:
            FrameError: the bytes are not frames of such messages.
        """
        self._buffer += received
        messages: list[Message] = []
        at = 0
        while len(self._buffer) - at >= HEADER_BYTES:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            if length > MAX_FRAME_BYTES:
                raise FrameError(
                    f"the peer sent a frame of {length} bytes; at most {MAX_FRAME_BYTES} are allowed"
                )
            end = at + HEADER_BYTES + length
            if len(self._buffer) < end:
                break
            messages.append(self._decode(bytes(self._buffer[at + HEADER_BYTES : end])))
            at = end
        del self._buffer[:at]
        return messages

    def _decode(self, payload: bytes) -> Message:
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise FrameError(f"the peer sent a frame that cannot be read: {error}") from error
