from __future__ import annotations

from llmd.server.dialects.openai.plugin import llmd_dialects


def test_announces_its_routes() -> None:
    (dialect,) = llmd_dialects()
    assert dialect.name == "openai"
    assert [(route.method, route.path) for route in dialect.routes()] == [
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/input_tokens"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/responses"),
        ("POST", "/v1/responses/input_tokens"),
        ("POST", "/v1/responses/compact"),
        ("GET", "/v1/responses"),  # a WebSocket
        ("GET", "/v1/responses/{id}"),
        ("DELETE", "/v1/responses/{id}"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/{id}"),
    ]
