"""Registers the dialect."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.hooks import hookimpl
from llmd.api.plugins import Dialect, Route

LLMD_API = 2
STREAMED = ("application/json", "text/event-stream")


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect("openai", _routes)]


def _routes() -> Sequence[Route]:
    from llmd.server.dialects.openai import bodies, chat, completions, embeddings, input_tokens, models
    from llmd.server.dialects.openai.responses.bodies import COMPACT, COUNT, RESPONSE
    from llmd.server.dialects.openai.responses.compaction import Compaction
    from llmd.server.dialects.openai.responses.routes import Responses
    from llmd.server.dialects.openai.responses.socket import ResponsesSocket
    from llmd.server.dialects.openai.responses.store import ResponseStore

    responses = Responses(ResponseStore())
    socket = ResponsesSocket(responses)
    return [
        Route("POST", "/v1/chat/completions", chat.answer, body=bodies.CHAT, replies=STREAMED),
        Route("POST", "/v1/chat/completions/input_tokens", input_tokens.count_chat, body=bodies.CHAT_PROMPT),
        Route("POST", "/v1/completions", completions.answer, body=bodies.COMPLETION, replies=STREAMED),
        Route("POST", "/v1/embeddings", embeddings.answer, body=bodies.EMBEDDING),
        Route("POST", "/v1/responses", responses.create, body=RESPONSE, replies=STREAMED),
        Route("POST", "/v1/responses/input_tokens", responses.count, body=COUNT),
        Route("POST", "/v1/responses/compact", Compaction(responses).compact, body=COMPACT),
        Route("GET", "/v1/responses", socket.connect, replies=("websocket",)),
        Route("GET", "/v1/responses/{id}", responses.show),
        Route("DELETE", "/v1/responses/{id}", responses.delete),
        Route("GET", "/v1/models", models.list_models),
        Route("GET", "/v1/models/{id}", models.show_model),
    ]
