"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route

LLMD_API = 2


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("llamacpp", _routes)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.llamacpp import completion, embedding, state, tokens

    return [
        Route("POST", "/tokenize", tokens.tokenize),
        Route("POST", "/detokenize", tokens.detokenize),
        Route("POST", "/apply-template", tokens.apply_template),
        Route("GET", "/props", state.props),
        Route("GET", "/slots", state.slots),
        Route("POST", "/completion", completion.complete),
        Route("POST", "/infill", completion.infill),
        Route("POST", "/embedding", embedding.embed),
        Route("POST", "/embeddings", embedding.embed_or_openai),
    ]
