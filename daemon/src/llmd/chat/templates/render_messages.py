"""Messages between the daemon and the template renderer, as msgpack payloads of `llmd.process.worker`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from llmd.api.decoding import prepared

# A prompt of a million tokens has about 4 MB:
# a template that renders more than this limit is in an endless loop.
MAX_REPLY_BYTES = 64 << 20

FailureKind = Literal["syntax", "refused", "sandbox", "memory", "runtime"]


class RenderJob(msgspec.Struct, frozen=True):
    """A template to render."""

    template: str
    variables: dict[str, Any]
    now: str
    """The local time in ISO 8601, for ``strftime_now``."""


class Rendered(msgspec.Struct, frozen=True, tag=True):
    """The prompt."""

    text: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The template could not be rendered."""

    kind: FailureKind
    """``refused``: the template itself called ``raise_exception``. After ``memory`` the process ends."""
    message: str


Reply = Rendered | Failed


def pack(message: RenderJob | Reply) -> bytes:
    """Return a message as msgpack.

    Raises:
        OverflowError: an integer has more than 64 bits.
        UnicodeEncodeError: a text contains lone surrogates.
    """
    return msgspec.msgpack.encode(message)


def unpack_job(payload: bytes) -> RenderJob:
    return msgspec.msgpack.decode(payload, type=prepared(RenderJob))


def unpack_reply(payload: bytes) -> Reply:
    """Raises `msgspec.DecodeError` if the payload is not a reply."""
    reply: Reply = msgspec.msgpack.decode(payload, type=prepared(Reply))
    return reply
