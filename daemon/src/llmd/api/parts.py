"""The parts of an answer: text, reasoning and tool calls. Each dialect has its own form for them."""

from __future__ import annotations

import msgspec


class Text(msgspec.Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """A piece of the reasoning before the answer."""

    text: str


class CallStart(msgspec.Struct, frozen=True):
    """The beginning of a tool call. The beginning of the next call ends it."""

    index: int
    """Number of the call in the answer, from 0."""
    name: str
    """Name of the tool."""


class CallArguments(msgspec.Struct, frozen=True):
    """A piece of the arguments of the current call."""

    index: int
    """`CallStart.index` of the call."""
    json: str
    """Joined, the pieces of a call are one JSON object."""


AnswerPart = Text | Reasoning | CallStart | CallArguments
"""One part of an answer."""
