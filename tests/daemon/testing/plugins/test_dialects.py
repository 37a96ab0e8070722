"""The routes of a dialect must be ones that the server can serve."""

from __future__ import annotations

from typing import Any

from llmd.api.plugins import Dialect, Route
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.dialects import check_dialect, faults


async def answer(_request: Any, _service: Any) -> None:
    """Answer nothing."""


def test_sound_routes_pass() -> None:
    good = Dialect("made", lambda: [Route("GET", "/a", answer), Route("POST", "/a", answer)])
    (result,) = check_dialect(good)
    assert result == CaseResult("dialect made: routes", None)


def test_each_fault_is_named() -> None:
    routes = [
        Route("GET", "a", answer),
        Route("GET", "/b", str.strip),  # type: ignore[arg-type]
        Route("GET", "/c", answer),
        Route("GET", "/c", answer),
        "x",
    ]
    assert faults(Dialect("made", lambda: routes)) == [  # type: ignore[arg-type,return-value]
        "str is not a Route",
        "a does not begin with a slash",
        "the handler of GET /b is not a coroutine function",
        "GET /c occurs twice",
    ]
    assert faults(Dialect("made", list)) == ["it has no routes"]
