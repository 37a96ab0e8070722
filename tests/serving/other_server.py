"""Servers that are no daemon, for what speaks to any server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(
    site: Callable[..., web.BaseSite], handler: Handler, **where: Any
) -> AsyncIterator[web.AppRunner]:
    """Run a server that answers every request with the handler, at the given site."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await site(runner, **where).start()
    try:
        yield runner
    finally:
        await runner.cleanup()
