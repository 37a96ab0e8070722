from __future__ import annotations

from llmd.server.dialects.llamacpp.plugin import llmd_dialects


def test_announces_llama_cpps_own_routes() -> None:
    (dialect,) = llmd_dialects()
    assert (dialect.name, dialect.errors) == ("llamacpp", None)
    paths = {(route.method, route.path) for route in dialect.routes()}
    assert {("POST", "/tokenize"), ("GET", "/props"), ("POST", "/completion")} <= paths
