"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route
from llmd.server.dialects.ollama.errors import OLLAMA

LLMD_API = 2


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("ollama", _routes, OLLAMA)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.ollama import chat, create, embed, generate, listing, manage, pull, show, status

    return [
        Route("GET", "/", status.root, probe=True, right="none"),
        Route("GET", "/api/version", status.version, probe=True),
        Route("GET", "/api/status", status.status),
        Route("GET", "/api/tags", listing.tags),
        Route("GET", "/api/ps", listing.ps),
        Route("POST", "/api/show", show.show),
        Route("POST", "/api/create", create.create, right="manage"),
        Route("POST", "/api/pull", pull.pull, right="manage"),
        Route("POST", "/api/copy", manage.copy, right="manage"),
        Route("DELETE", "/api/delete", manage.delete, right="manage"),
        Route("POST", "/api/generate", generate.answer),
        Route("POST", "/api/chat", chat.answer),
        *(Route("POST", path, status.no_account) for path in ("/api/me", "/api/signout")),
        Route("HEAD", "/api/blobs/{id}", status.no_blob),
        Route("POST", "/api/blobs/{id}", status.no_blobs, right="manage"),
        Route("POST", "/api/push", status.no_push),
        Route("POST", "/api/embed", embed.embed),
        Route("POST", "/api/embeddings", embed.embed_one),
    ]
