"""Announces the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route

LLMD_API = 1


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("openai", _routes)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.openai import chat, completions, models

    return [
        Route("POST", "/v1/chat/completions", chat.answer),
        Route("POST", "/v1/completions", completions.answer),
        Route("GET", "/v1/models", models.list_models),
        Route("GET", "/v1/models/{id}", models.show_model),
    ]
