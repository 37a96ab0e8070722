from __future__ import annotations

from llmd.server.dialects.ollama.errors import OLLAMA
from llmd.server.dialects.ollama.plugin import llmd_dialects


def test_announces_the_routes_that_clients_call_first() -> None:
    (dialect,) = llmd_dialects()
    assert (dialect.name, dialect.errors) == ("ollama", OLLAMA)
    paths = {(route.method, route.path) for route in dialect.routes()}
    assert {("GET", "/api/version"), ("GET", "/api/tags"), ("POST", "/api/show")} <= paths
    assert {route.path for route in dialect.routes() if route.probe} == {"/api/version"}
