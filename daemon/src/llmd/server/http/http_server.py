"""Serves an application on the daemon's sockets."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from llmd.config import TcpAddress
from llmd.server.http.certificate import Certificate
from llmd.server.http.connections import ConnectionLimits, Connections
from llmd.server.http.listeners import BACKLOG, Listener

# By then, handlers have finished or were cancelled; only connections are left.
CLOSING_S = 1.0


@asynccontextmanager
async def http_server(
    app: web.Application,
    listeners: Sequence[Listener],
    certificate: Certificate | None,
    limits: ConnectionLimits,
) -> AsyncIterator[Connections]:
    """Accept connections until the block ends; those to ``https://…`` addresses are encrypted."""
    # If a client disconnects, its handler is cancelled; by default, aiohttp would let it continue.
    runner = web.AppRunner(
        app, handler_cancellation=True, handle_signals=False, access_log=None, shutdown_timeout=CLOSING_S
    )
    await runner.setup()
    assert runner.server is not None
    connections = Connections(runner.server, limits)
    accepting: list[asyncio.Server] = []
    try:
        for listener in listeners:
            accepting.append(await _accept(listener, connections, certificate))  # noqa: PERF401 - closed if one fails
        connections.accepting = accepting
        yield connections
    finally:
        for server in accepting:
            server.close()
        await runner.cleanup()


async def _accept(
    listener: Listener, connections: Connections, certificate: Certificate | None
) -> asyncio.Server:
    encrypted = isinstance(listener.address, TcpAddress) and listener.address.tls
    tls = certificate.context if certificate and encrypted else None
    loop = asyncio.get_running_loop()
    if listener.socket.family == socket.AF_UNIX:
        # The file is removed by the listener, unless it belongs to the service manager.
        kept: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
        return await loop.create_unix_server(connections, sock=listener.socket, backlog=BACKLOG, **kept)
    return await loop.create_server(connections, sock=listener.socket, ssl=tls, backlog=BACKLOG)
