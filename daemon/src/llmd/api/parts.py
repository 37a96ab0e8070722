"""What an answer is made of, in order: text, reasoning, and calls of tools. Every dialect writes these in its own form."""

from __future__ import annotations

import msgspec


class Text(msgspec.Struct, frozen=True):
    """A piece of the answer proper."""

    text: str


class Reasoning(msgspec.Struct, frozen=True):
    """A piece of what the model thought before it answered."""

    text: str


class CallStart(msgspec.Struct, frozen=True):
    """A call of a tool begins. Calls of an answer are numbered from 0, and one ends where the next begins."""

    index: int
    name: str


class CallArguments(msgspec.Struct, frozen=True):
    """A piece of the arguments of the call that began last; all of a call's joined are one JSON object."""

    index: int
    json: str


AnswerPart = Text | Reasoning | CallStart | CallArguments
