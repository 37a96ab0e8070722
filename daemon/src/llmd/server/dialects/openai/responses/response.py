"""The response object, which is the whole reply or is in the first and last events of a stream."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from llmd.api.problem import Problem
from llmd.chat.answers.answer_text import Piece
from llmd.server.dialects.openai.responses.output import Output
from llmd.server.generation.generation import Usage

Event = dict[str, Any]

_ERROR_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


class Response:
    """One response and its events, numbered from 0. ``echo`` holds the fields that repeat the request."""

    def __init__(self, model: str, echo: Mapping[str, Any], output: Output) -> None:
        self._head = {
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
            **echo,
            "background": False,
            "service_tier": "default",
        }
        self._output = output
        self._finish: str | None = None
        self._next_number = 0

    def events(self, piece: Piece) -> Iterator[Event]:
        """Yield the events of a piece; those of the first piece follow two opening events."""
        if not self._next_number:
            yield from self.opening()
        self._finish = piece.finish
        for event in self._output.events(piece):
            yield self._numbered(event)

    def add(self, piece: Piece) -> None:
        """Keep a piece for `body`."""
        for _ in self.events(piece):
            pass

    def end(self, usage: Usage) -> Event:
        """Return the last event."""
        body = self.body(usage)
        return self._numbered({"type": f"response.{body['status']}", "response": body})

    def failed(self, problem: Problem) -> Event:
        """Return the last event of a stream that fails."""
        if not self._next_number:
            return error_event(problem)
        error = {"code": _ERROR_CODES.get(problem.status, "server_error"), "message": problem.message}
        body = self._object("failed", output=self._output.items, error=error)
        return self._numbered({"type": "response.failed", "response": body})

    def body(self, usage: Usage) -> dict[str, Any]:
        """Return the whole response."""
        used = usage_body(usage)
        if self._finish == "length":
            reason = {"reason": "max_output_tokens"}
            return self._object(
                "incomplete", output=self._output.items, usage=used, incomplete_details=reason
            )
        completed_at = int(time.time())
        return self._object("completed", output=self._output.items, usage=used, completed_at=completed_at)

    @property
    def has_begun(self) -> bool:
        return self._next_number > 0

    def opening(self) -> Iterator[Event]:
        """Yield the first two events."""
        begun = self._object("in_progress", output=[])
        yield self._numbered({"type": "response.created", "response": begun})
        yield self._numbered({"type": "response.in_progress", "response": begun})

    def _object(self, status: str, **fields: Any) -> dict[str, Any]:
        absent = dict.fromkeys(("error", "incomplete_details", "usage", "completed_at"))
        return {**self._head, "status": status, **absent, **fields}

    def _numbered(self, event: Event) -> Event:
        number, self._next_number = self._next_number, self._next_number + 1
        return {**event, "sequence_number": number}


def error_event(problem: Problem) -> Event:
    """Return the only event of a stream that fails before its response was sent.

    OpenAI documents the error's fields as fields of the event, but sends them in ``error``, as Open
    Responses does. Its SDK raises if it finds ``error`` and otherwise returns the event. Sending both
    suits all clients.
    """
    fields = {"code": problem.code, "message": problem.message, "param": problem.param}
    return {"type": "error", "sequence_number": 0, **fields, "error": {"type": problem.type, **fields}}


def usage_body(usage: Usage) -> dict[str, Any]:
    """Return the usage in this API's format."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
