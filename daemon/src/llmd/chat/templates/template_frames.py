"""What the front and the template process say to each other.

A frame is a 4-byte little-endian length and one msgpack map tagged by ``type``. The process sends `Ready` once,
then one `Rendered` or `Failed` for each `RenderJob`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

HEADER_BYTES = 4
# A prompt of a million tokens has about 4 MB; more than this is a template that runs away.
MAX_FRAME_BYTES = 64 << 20

FailureKind = Literal["syntax", "refused", "sandbox", "memory", "runtime"]


class RenderJob(msgspec.Struct, frozen=True, tag=True):
    """Render ``template`` with ``variables``; ``now`` is the local time in ISO 8601, for ``strftime_now``."""

    template: str
    variables: dict[str, Any]
    now: str


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The process has started and set its limits."""


class Rendered(msgspec.Struct, frozen=True, tag=True):
    text: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """``refused``: the template itself called ``raise_exception``. After ``memory`` the process ends."""

    kind: FailureKind
    message: str


Reply = Ready | Rendered | Failed


def pack(message: RenderJob | Reply) -> bytes:
    """The frame of a message. Raises OverflowError and UnicodeEncodeError for what msgpack cannot hold."""
    payload = msgspec.msgpack.encode(message)
    return len(payload).to_bytes(HEADER_BYTES, "little") + payload


def unpack_job(payload: bytes) -> RenderJob:
    return msgspec.msgpack.decode(payload, type=RenderJob)


def unpack_reply(payload: bytes) -> Reply:
    reply: Reply = msgspec.msgpack.decode(payload, type=Reply)
    return reply
