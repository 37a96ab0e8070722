"""The module that llmd imports to describe this plugin. It imports only llmd.api and the standard library."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api import Dialect, Route, hookimpl

LLMD_API = 2


@hookimpl
def llmd_dialects() -> Sequence[Dialect]:
    return [Dialect(name="example", routes=routes)]


def routes() -> Sequence[Route]:
    """Return the routes. Called once, when the HTTP server starts; handlers are imported here."""
    from llmd_dialect_example.handlers import hello

    return [Route("GET", "/example/hello", hello, right="none")]
