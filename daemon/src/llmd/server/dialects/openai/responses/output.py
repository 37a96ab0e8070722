"""Output items of a response and their events while they grow."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from llmd.api.parts import Text
from llmd.chat.answers.answer_text import AnswerToken, Piece
from llmd.server.dialects.openai.responses.calls import Call, FunctionCall
from llmd.server.generation.answer_items import (
    AnswerItems,
    Item,
    ItemClosed,
    ItemEvent,
    ItemGrew,
    ItemKind,
    ItemOpened,
)

Event = dict[str, Any]
Entry = dict[str, Any]

_PREFIXES = {ItemKind.TEXT: "msg", ItemKind.REASONING: "rs"}


class Output:
    """The output of one response. ``items`` are the finished ones.

    ``call`` returns the call for the name that the model wrote. ``summarized``: reasoning is sent as a
    summary. ``entries`` returns the logprobs of tokens, or an empty list if they were not requested.
    """

    def __init__(
        self,
        call: Callable[[str], Call],
        entries: Callable[[tuple[AnswerToken, ...]], list[Entry]],
        *,
        summarized: bool,
    ) -> None:
        self.items: list[Entry] = []
        self._call = call
        self._called: Call = FunctionCall({})
        self._entries = entries
        self._summarized = summarized
        self._answer = AnswerItems()
        self._id = ""
        self._call_id = ""
        self._logprobs: list[Entry] = []
        self._new_logprobs: list[Entry] = []
        self._status = "completed"

    def events(self, piece: Piece) -> Iterator[Event]:
        """Yield the events of a piece; after the last piece, every item is finished."""
        # Logprobs belong to the text: reasoning and calls have no field for them.
        if any(isinstance(part, Text) for part in piece.parts):
            self._new_logprobs += self._entries(piece.tokens)
        for event in self._answer.feed(piece.parts):
            yield from self._item_events(event)
        if piece.finish is not None:
            self._status = "incomplete" if piece.finish == "length" else "completed"
            for event in self._answer.finish():
                yield from self._item_events(event)

    def _item_events(self, event: ItemEvent) -> Iterator[Event]:
        match event:
            case ItemOpened(item):
                yield from self._opened(item)
            case ItemGrew(item, text):
                yield from self._grew(item, text)
            case ItemClosed(item):
                yield from self._closed(item)

    def _opened(self, item: Item) -> Iterator[Event]:
        if item.kind is ItemKind.CALL:
            self._called = self._call(item.name)
        prefix = _PREFIXES.get(item.kind, self._called.prefix)
        self._id = f"{prefix}_{uuid.uuid4().hex}"
        self._call_id = f"call_{uuid.uuid4().hex}"
        self._logprobs = []
        added = self._whole(item, "in_progress")
        match item.kind:
            case ItemKind.TEXT:
                added["content"] = []
            case ItemKind.REASONING:
                added |= {"summary": [], "content": []}
        yield {"type": "response.output_item.added", "output_index": item.index, "item": added}
        match item.kind:
            case ItemKind.TEXT:
                yield self._at(item, "content_part.added", part=self._part(item))
            case ItemKind.REASONING if self._summarized:
                yield self._at(item, "reasoning_summary_part.added", part=_summary(item))

    def _grew(self, item: Item, text: str) -> Iterator[Event]:
        match item.kind:
            case ItemKind.TEXT:
                new, self._new_logprobs = self._new_logprobs, []
                self._logprobs += new
                yield self._at(item, "output_text.delta", delta=text, logprobs=new)
            case ItemKind.REASONING:
                kind = "reasoning_summary_text" if self._summarized else "reasoning_text"
                yield self._at(item, f"{kind}.delta", delta=text)
            case ItemKind.CALL:
                for name, fields in self._called.grew(text):
                    yield self._at(item, name, **fields)

    def _closed(self, item: Item) -> Iterator[Event]:
        match item.kind:
            case ItemKind.TEXT:
                yield self._at(item, "output_text.done", text=item.text, logprobs=self._logprobs)
                yield self._at(item, "content_part.done", part=self._part(item))
            case ItemKind.REASONING if self._summarized:
                yield self._at(item, "reasoning_summary_text.done", text=item.text)
                yield self._at(item, "reasoning_summary_part.done", part=_summary(item))
            case ItemKind.REASONING:
                yield self._at(item, "reasoning_text.done", text=item.text)
            case ItemKind.CALL:
                for name, fields in self._called.closed(item.text):
                    yield self._at(item, name, **fields)
        whole = self._whole(item, self._status)
        self.items.append(whole)
        yield {"type": "response.output_item.done", "output_index": item.index, "item": whole}

    def _at(self, item: Item, kind: str, **fields: Any) -> Event:
        """Return an event about the open item and, unless it is a call, its only part."""
        place: Event = {"item_id": self._id, "output_index": item.index}
        if item.kind is not ItemKind.CALL:
            summary = item.kind is ItemKind.REASONING and self._summarized
            place["summary_index" if summary else "content_index"] = 0
        return {"type": f"response.{kind}", **place, **fields}

    def _whole(self, item: Item, status: str) -> Entry:
        head = {"id": self._id, "status": status}
        match item.kind:
            case ItemKind.TEXT:
                return {**head, "type": "message", "role": "assistant", "content": [self._part(item)]}
            case ItemKind.REASONING:
                content = [] if self._summarized else [{"type": "reasoning_text", "text": item.text}]
                summary = [_summary(item)] if self._summarized else []
                return {**head, "type": "reasoning", "summary": summary, "content": content}
            case ItemKind.CALL:
                ids = {"id": self._id, "call_id": self._call_id}
                return {**ids, **self._called.item(item.text, status)}

    def _part(self, item: Item) -> Entry:
        return {"type": "output_text", "text": item.text, "annotations": [], "logprobs": list(self._logprobs)}


def _summary(item: Item) -> Entry:
    return {"type": "summary_text", "text": item.text}
