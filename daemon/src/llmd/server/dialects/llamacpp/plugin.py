"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route

LLMD_API = 2
STREAMED = ("application/json", "text/event-stream")


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("llamacpp", _routes)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.llamacpp import bodies, completion, embedding, state, tokens
    from llmd.server.dialects.openai.bodies import EMBEDDING

    return [
        Route("POST", "/tokenize", tokens.tokenize, body=bodies.TOKENIZE),
        Route("POST", "/detokenize", tokens.detokenize, body=bodies.DETOKENIZE),
        Route("POST", "/apply-template", tokens.apply_template, body=bodies.TEMPLATE),
        Route("GET", "/props", state.props, query=("model",)),
        Route("GET", "/slots", state.slots, query=("model", "fail_on_no_slot")),
        Route("POST", "/completion", completion.complete, body=bodies.COMPLETION, replies=STREAMED),
        Route("POST", "/infill", completion.infill, body=bodies.INFILL, replies=STREAMED),
        Route("POST", "/embedding", embedding.embed, body=bodies.EMBEDDING),
        Route("POST", "/embeddings", embedding.embed_or_openai, body=(*EMBEDDING, bodies.EmbeddingFields)),
    ]
