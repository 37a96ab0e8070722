from __future__ import annotations

from llmd.server.dialects.native.plugin import llmd_dialects


def test_announces_health_and_administration() -> None:
    (dialect,) = llmd_dialects()
    assert dialect.name == "native"
    paths = {(route.method, route.path) for route in dialect.routes()}
    assert {("GET", "/health"), ("GET", "/ready"), ("GET", "/version"), ("POST", "/llmd/stop")} <= paths


def test_administration_needs_the_right_to_manage() -> None:
    (dialect,) = llmd_dialects()
    rights = {route.right for route in dialect.routes() if route.path.startswith("/llmd/")}
    assert rights == {"manage"}
