from __future__ import annotations

from llmd.server.dialects.openai.plugin import llmd_dialects


def test_announces_its_routes() -> None:
    (dialect,) = llmd_dialects()
    assert dialect.name == "openai"
    assert [(route.method, route.path) for route in dialect.routes()] == [
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/{id}"),
    ]
