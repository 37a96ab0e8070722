"""Writes answers in Ollama's format: lines, the last of which has the counts and durations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from llmd.api.parts import Reasoning, Text
from llmd.chat.answers.answer_text import Piece
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.server.dialects.ollama.calls import ToolCalls
from llmd.server.dialects.ollama.times import rfc3339
from llmd.server.generation.logprobs import logprob_entries

Content = Callable[[str, str, list[dict[str, Any]]], dict[str, Any]]
"""Formats text, thinking and calls for one route."""


def said_in_chat(text: str, thinking: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an assistant message."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = calls
    return {"message": message}


def said_in_generate(text: str, thinking: str, _calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the text; this route has no tools."""
    return {"response": text} | ({"thinking": thinking} if thinking else {})


class AnswerLines:
    """The lines of one answer. ``tokens`` are the token ids so far, without those of a stop string."""

    def __init__(
        self,
        model: str,
        content: Content,
        tokenizer: Tokenizer,
        *,
        logprobs: bool,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.tokens: list[int] = []
        self._model = model
        self._content = content
        self._tokenizer = tokenizer
        self._logprobs = logprobs
        self._clock = clock
        self._calls = ToolCalls()

    def lines(self, piece: Piece) -> Iterator[dict[str, Any]]:
        """Yield the line of a piece, unless it is empty."""
        self.tokens += piece.token_ids if piece.stop is None else [token.token_id for token in piece.tokens]
        text = "".join(part.text for part in piece.parts if isinstance(part, Text))
        thinking = "".join(part.text for part in piece.parts if isinstance(part, Reasoning))
        calls = self._calls.feed(piece.parts) + (self._calls.finish() if piece.finish else [])
        entries = logprob_entries(self._tokenizer, piece.tokens) if self._logprobs else []
        if text or thinking or calls or entries:
            content = self._content(text, thinking, calls)
            yield self._line(content | ({"logprobs": entries} if entries else {}))

    def last(self, reason: str, figures: dict[str, Any]) -> dict[str, Any]:
        """Return the line that ends the answer."""
        line = self._line(self._content("", "", []))
        return line | {"done": True, "done_reason": reason} | figures

    def _line(self, content: dict[str, Any]) -> dict[str, Any]:
        return {"model": self._model, "created_at": rfc3339(self._clock()), **content, "done": False}


def joined(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Join lines to a whole answer: the last line with all text and calls."""
    whole = dict(lines[-1])
    for name in ("response", "thinking"):
        if text := "".join(line.get(name, "") for line in lines):
            whole[name] = text
    if "message" in whole:
        whole["message"] = _joined_message([line["message"] for line in lines])
    entries = [entry for line in lines for entry in line.get("logprobs", ())]
    return whole | ({"logprobs": entries} if entries else {})


def _joined_message(messages: list[dict[str, Any]]) -> dict[str, Any]:
    whole = {"role": "assistant", "content": "".join(message["content"] for message in messages)}
    thinking = "".join(message.get("thinking", "") for message in messages)
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return whole | ({"thinking": thinking} if thinking else {}) | ({"tool_calls": calls} if calls else {})
