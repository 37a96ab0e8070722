"""The HTTP side of the daemon: the routes of all dialects behind access checks, on the daemon's sockets."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from llmd.api.plugins import Dialect
from llmd.config import LimitsConfig
from llmd.server.app import build_app
from llmd.server.http.access import Access
from llmd.server.http.certificate import Certificate
from llmd.server.http.connections import ConnectionLimits, raise_descriptor_limit
from llmd.server.http.error_shapes import ErrorShapes
from llmd.server.http.guards import Guards
from llmd.server.http.http_server import http_server
from llmd.server.http.listeners import Listener
from llmd.server.http.origins import AllowedOrigins
from llmd.server.http.routing import DIALECTS, RouteTable, ServedDialect
from llmd.server.service import Service


@asynccontextmanager
async def serve_http(
    service: Service,
    dialects: Iterable[Dialect],
    listeners: Sequence[Listener],
    certificate: Certificate | None,
    access: Access,
    origins: AllowedOrigins,
) -> AsyncIterator[None]:
    """Serve requests until the block ends."""
    config = service.config
    raise_descriptor_limit(2 * config.limits.max_connections)
    served = tuple(map(ServedDialect.of, dialects))
    routes = RouteTable(route for dialect in served for route in dialect.routes)
    shapes = ErrorShapes(dialect.errors for dialect in served if dialect.errors is not None)
    guards = Guards(socket.gethostname(), frozenset(config.listen.allow_host), origins)
    app = build_app(service, routes, shapes, guards, access)
    app[DIALECTS] = served
    async with http_server(app, listeners, certificate, _limits(config.limits)):
        yield


def _limits(config: LimitsConfig) -> ConnectionLimits:
    return ConnectionLimits(
        config.max_connections, config.headers_timeout_s, config.write_timeout_s, config.idle_timeout_s
    )
