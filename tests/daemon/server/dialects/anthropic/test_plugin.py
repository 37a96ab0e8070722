from __future__ import annotations

from llmd.server.dialects.anthropic.plugin import llmd_dialects


def test_announces_its_routes_and_the_form_of_its_errors() -> None:
    (dialect,) = llmd_dialects()
    assert dialect.name == "anthropic"
    assert dialect.errors is not None
    assert [(route.method, route.path) for route in dialect.routes()] == [
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("GET", "/api/hello"),
    ]
