"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route
from llmd.server.dialects.ollama.errors import OLLAMA

LLMD_API = 2
STREAMED = ("application/json", "application/x-ndjson")


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("ollama", _routes, OLLAMA)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.ollama import (
        bodies,
        chat,
        create,
        embed,
        generate,
        listing,
        manage,
        pull,
        show,
        status,
    )

    return [
        Route("GET", "/api/version", status.version, probe=True),
        Route("GET", "/api/status", status.status),
        Route("GET", "/api/tags", listing.tags),
        Route("GET", "/api/ps", listing.ps),
        Route("POST", "/api/show", show.show, body=bodies.NAMED),
        Route("POST", "/api/create", create.create, right="manage", body=bodies.CREATE, replies=STREAMED),
        Route("POST", "/api/pull", pull.pull, right="manage", body=bodies.PULL, replies=STREAMED),
        Route("POST", "/api/copy", manage.copy, right="manage", body=bodies.COPY),
        Route("DELETE", "/api/delete", manage.delete, right="manage", body=bodies.NAMED),
        Route("POST", "/api/generate", generate.answer, body=bodies.GENERATE, replies=STREAMED),
        Route("POST", "/api/chat", chat.answer, body=bodies.CHAT, replies=STREAMED),
        *(Route("POST", path, status.no_account, replies=()) for path in ("/api/me", "/api/signout")),
        Route("HEAD", "/api/blobs/{id}", status.no_blob, replies=()),
        Route("POST", "/api/blobs/{id}", status.no_blobs, right="manage", replies=()),
        Route("POST", "/api/push", status.no_push, replies=()),
        Route("POST", "/api/embed", embed.embed, body=bodies.EMBED),
        Route("POST", "/api/embeddings", embed.embed_one, body=bodies.EMBED_ONE),
    ]
