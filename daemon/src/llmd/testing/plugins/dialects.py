"""Checks of dialects: their routes can be served together."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator

from llmd.api.plugins import Dialect, Route
from llmd.testing.plugins.results import Result, case


def check_dialect(dialect: Dialect) -> Iterator[Result]:
    """Yield the results for an HTTP API. No request is sent."""
    yield case(f"dialect {dialect.name}: routes", lambda: "; ".join(faults(dialect)))


def faults(dialect: Dialect) -> list[str]:
    """Return what is wrong with the routes."""
    returned: list[object] = list(dialect.routes())
    routes = [one for one in returned if isinstance(one, Route)]
    found = [f"{type(one).__name__} is not a Route" for one in returned if not isinstance(one, Route)]
    found += [] if returned else ["it has no routes"]
    found += [f"{one.path} does not begin with a slash" for one in routes if not one.path.startswith("/")]
    found += [
        f"the handler of {one.method} {one.path} is not a coroutine function"
        for one in routes
        if not inspect.iscoroutinefunction(one.handler)
    ]
    counts = Counter((one.method, one.path) for one in routes)
    return found + [f"{method} {path} occurs twice" for (method, path), n in counts.items() if n > 1]
