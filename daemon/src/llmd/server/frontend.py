"""The HTTP side of the daemon: the routes of all dialects behind access checks, on the daemon's sockets."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from llmd.api.plugins import Dialect
from llmd.config import Address, LimitsConfig, ServerConfig
from llmd.server.app import RequestHandler, build_app
from llmd.server.http.access import Access
from llmd.server.http.certificate import Certificate
from llmd.server.http.connections import ConnectionLimits, Connections, raise_descriptor_limit
from llmd.server.http.error_shapes import ErrorShapes
from llmd.server.http.guards import Guards
from llmd.server.http.http_server import http_server
from llmd.server.http.listeners import Listener
from llmd.server.http.origins import AllowedOrigins
from llmd.server.http.routing import DIALECTS, RouteTable, ServedDialect
from llmd.server.service import Service


class FrontParts:
    """What requests pass through. Building it checks that the dialects fit together."""

    def __init__(self, config: ServerConfig, dialects: Iterable[Dialect], origins: AllowedOrigins) -> None:
        """Raises `PluginError` if two dialects serve the same method and path."""
        self.dialects = [ServedDialect.of(dialect) for dialect in dialects]
        self.routes = RouteTable(route for dialect in self.dialects for route in dialect.routes)
        self.shapes = ErrorShapes(dialect.errors for dialect in self.dialects if dialect.errors is not None)
        self.guards = Guards(socket.gethostname(), frozenset(config.listen.allow_host), origins)
        self.limits = _limits(config.limits)


class Front:
    """The running HTTP side."""

    def __init__(
        self,
        handler: RequestHandler,
        connections: Connections,
        dialects: list[ServedDialect],
        addresses: tuple[Address, ...],
    ) -> None:
        """``dialects`` is the application's own list."""
        self.addresses = addresses
        self._handler = handler
        self._dialects = dialects
        self._connections = connections

    def use(self, parts: FrontParts) -> None:
        """Use other parts for later requests and connections."""
        self._handler.use(parts.routes, parts.shapes, parts.guards)
        self._dialects[:] = parts.dialects
        self._connections.limits = parts.limits

    def stop_accepting(self) -> None:
        """Leave new connections to the service manager, which holds the listening sockets, too."""
        self._connections.stop_accepting()


@asynccontextmanager
async def serve_http(
    service: Service,
    parts: FrontParts,
    listeners: Sequence[Listener],
    certificate: Certificate | None,
    access: Access,
) -> AsyncIterator[Front]:
    """Serve requests until the block ends."""
    raise_descriptor_limit(2 * service.config.limits.max_connections)
    handler = RequestHandler(service, parts.routes, parts.shapes, parts.guards, access)
    app = build_app(service, handler)
    app[DIALECTS] = dialects = list(parts.dialects)
    async with http_server(app, listeners, certificate, parts.limits) as connections:
        yield Front(handler, connections, dialects, tuple(listener.address for listener in listeners))


def _limits(config: LimitsConfig) -> ConnectionLimits:
    return ConnectionLimits(
        config.max_connections, config.headers_timeout_s, config.write_timeout_s, config.idle_timeout_s
    )
