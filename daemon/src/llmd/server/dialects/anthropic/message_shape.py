"""Writes answers in Anthropic's format: a message of content blocks, whole or as events."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from llmd.chat.answers.answer_text import Piece
from llmd.requests.ending import EndChoice
from llmd.server.generation.answer_items import (
    AnswerItems,
    Item,
    ItemClosed,
    ItemEvent,
    ItemGrew,
    ItemKind,
    ItemOpened,
)
from llmd.server.generation.generation import Usage

SIGNATURE = "llmd"
"""In place of Anthropic's signature of the reasoning. It is not checked when a client sends it back."""

Event = dict[str, Any]


class MessageShape:
    """One message. ``end`` holds the request's stop conditions."""

    def __init__(self, model: str, end: EndChoice, *, thinking_is_shown: bool) -> None:
        self._head = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model}
        self._end = end
        self._thinking_is_shown = thinking_is_shown
        self._items = AnswerItems()
        self._call_ids: dict[int, str] = {}
        self._last = Piece("")

    def start(self, usage: Usage) -> Event:
        """Return the first event; its output tokens are those of the message so far."""
        empty: Event = {"content": [], "stop_reason": None, "stop_sequence": None}
        return {"type": "message_start", "message": self._head | empty | {"usage": usage_body(usage)}}

    def events(self, piece: Piece) -> Iterator[Event]:
        """Yield the block events of a piece."""
        self._last = piece
        for event in self._items.feed(piece.parts):
            yield from self._block_events(event)
        if piece.finish is not None:
            for event in self._items.finish():
                yield from self._block_events(event)

    def add(self, piece: Piece) -> None:
        """Keep a piece for `body`."""
        for _ in self.events(piece):
            pass

    def end(self, usage: Usage) -> Iterator[Event]:
        """Yield the last two events."""
        yield {"type": "message_delta", "delta": self._reason(usage), "usage": usage_body(usage)}
        yield {"type": "message_stop"}

    def body(self, usage: Usage) -> dict[str, Any]:
        """Return the whole message."""
        content = [self._block(item) for item in self._items.items]
        return self._head | {"content": content} | self._reason(usage) | {"usage": usage_body(usage)}

    def _block_events(self, event: ItemEvent) -> Iterator[Event]:
        at = {"index": event.item.index}
        match event:
            case ItemOpened(item):
                if item.kind is ItemKind.CALL:
                    self._call_ids[item.index] = f"toolu_{uuid.uuid4().hex}"
                yield {"type": "content_block_start", **at, "content_block": self._empty_block(item)}
            case ItemGrew(item, text):
                if item.kind is not ItemKind.REASONING or self._thinking_is_shown:
                    yield {"type": "content_block_delta", **at, "delta": _delta(item, text)}
            case ItemClosed(item):
                if item.kind is ItemKind.REASONING:
                    signed = {"type": "signature_delta", "signature": SIGNATURE}
                    yield {"type": "content_block_delta", **at, "delta": signed}
                yield {"type": "content_block_stop", **at}

    def _empty_block(self, item: Item) -> dict[str, Any]:
        if item.kind is ItemKind.REASONING:
            return {"type": "thinking", "thinking": "", "signature": ""}
        return self._block(item)

    def _block(self, item: Item) -> dict[str, Any]:
        match item.kind:
            case ItemKind.TEXT:
                return {"type": "text", "text": item.text}
            case ItemKind.REASONING:
                text = item.text if self._thinking_is_shown else ""
                return {"type": "thinking", "thinking": text, "signature": SIGNATURE}
            case ItemKind.CALL:
                call_id = self._call_ids[item.index]
                return {"type": "tool_use", "id": call_id, "name": item.name, "input": _input(item)}

    def _reason(self, usage: Usage) -> dict[str, Any]:
        reason = self._stop_reason(usage)
        return {
            "stop_reason": reason,
            "stop_sequence": self._last.stop if reason == "stop_sequence" else None,
        }

    def _stop_reason(self, usage: Usage) -> str:
        # A model may have its own stop strings, which the client does not know.
        if self._last.stop in self._end.strings:
            return "stop_sequence"
        if self._last.finish == "length":
            limit = self._end.max_tokens
            limited = limit is not None and usage.completion_tokens >= limit
            return "max_tokens" if limited else "model_context_window_exceeded"
        called = any(item.kind is ItemKind.CALL for item in self._items.items)
        return "tool_use" if called else "end_turn"


def usage_body(usage: Usage) -> dict[str, Any]:
    """Return the usage as Anthropic counts it: input tokens exclude cached ones."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def _delta(item: Item, text: str) -> dict[str, Any]:
    match item.kind:
        case ItemKind.TEXT:
            return {"type": "text_delta", "text": text}
        case ItemKind.REASONING:
            return {"type": "thinking_delta", "thinking": text}
        case ItemKind.CALL:
            return {"type": "input_json_delta", "partial_json": text}


def _input(item: Item) -> dict[str, Any]:
    """Return the arguments of a call; an empty object if the token limit cut them off."""
    try:
        return msgspec.json.decode(item.text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
