"""The parts of an answer as items: a text, a run of reasoning or a tool call, one open at a time.

Dialects that number the parts of an answer (Anthropic's blocks, OpenAI's output items) build their events
from these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto

from msgspec import Struct

from llmd.api.parts import AnswerPart, CallArguments, CallStart, Reasoning, Text


class ItemKind(Enum):
    TEXT = auto()
    REASONING = auto()
    CALL = auto()


class Item(Struct, frozen=True):
    """One part of an answer."""

    index: int
    kind: ItemKind
    text: str = ""
    """Empty until the item is closed. For a call: its arguments, one JSON object."""
    name: str = ""
    """The tool; only a call has a name."""


class ItemOpened(Struct, frozen=True):
    """An item begins; it is still empty."""

    item: Item


class ItemGrew(Struct, frozen=True):
    """The open item got more text."""

    item: Item
    text: str


class ItemClosed(Struct, frozen=True):
    """The open item is complete."""

    item: Item


ItemEvent = ItemOpened | ItemGrew | ItemClosed


class AnswerItems:
    """Turns parts into item events. ``items`` contains the complete items."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._open: Item | None = None
        self._texts: list[str] = []

    def feed(self, parts: Iterable[AnswerPart]) -> Iterator[ItemEvent]:
        """Yield the events of the next parts."""
        for part in parts:
            match part:
                case Text(text):
                    yield from self._grow(ItemKind.TEXT, text)
                case Reasoning(text):
                    yield from self._grow(ItemKind.REASONING, text)
                case CallStart(name=name):
                    yield from self.finish()
                    yield self._begin(ItemKind.CALL, name)
                case CallArguments(json=text):
                    yield from self._grow(ItemKind.CALL, text)

    def finish(self) -> Iterator[ItemEvent]:
        """Close the open item; a call without arguments gets an empty object."""
        if self._open is None:
            return
        text = "".join(self._texts)
        if self._open.kind is ItemKind.CALL and not text:
            text = "{}"
            yield ItemGrew(self._open, text)
        whole = Item(self._open.index, self._open.kind, text, self._open.name)
        self.items.append(whole)
        self._open, self._texts = None, []
        yield ItemClosed(whole)

    def _begin(self, kind: ItemKind, name: str = "") -> ItemOpened:
        self._open = Item(len(self.items), kind, name=name)
        return ItemOpened(self._open)

    def _grow(self, kind: ItemKind, text: str) -> Iterator[ItemEvent]:
        if self._open is None or self._open.kind is not kind:
            yield from self.finish()
            yield self._begin(kind)
        assert self._open is not None
        self._texts.append(text)
        yield ItemGrew(self._open, text)
