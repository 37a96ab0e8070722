"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route
from llmd.server.dialects.anthropic.errors import ANTHROPIC

LLMD_API = 2
STREAMED = ("application/json", "text/event-stream")


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("anthropic", _routes, ANTHROPIC)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.anthropic import bodies, messages

    return [
        Route("POST", "/v1/messages", messages.answer, body=bodies.MESSAGE, replies=STREAMED),
        Route("POST", "/v1/messages/count_tokens", messages.count, body=bodies.COUNT),
        Route("GET", "/api/hello", messages.hello, probe=True, right="none"),
    ]
