"""The aiohttp application: one door for every request, whatever its dialect."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping
from contextlib import nullcontext

from aiohttp import web
from aiohttp.typedefs import Handler

from llmd.api.errors import LlmdError
from llmd.server import problems
from llmd.server.errors import ForbiddenError
from llmd.server.guards import Guards, cors_headers, peer_of, preflight_headers
from llmd.server.problems import problem_of
from llmd.server.routing import RouteTable, match
from llmd.server.service import Service

logger = logging.getLogger(__name__)

ADMIN_PREFIX = "/llmd/"
REQUEST_ID = "x-request-id"
MAX_REQUEST_ID_LEN = 128
CLIENT_GONE = 499

STARTED = web.RequestKey("started", float)
"""Where a request keeps the time at which it came."""

PREPARED = web.RequestKey("prepared", web.StreamResponse)
"""Where a request keeps its response once that was begun."""


class Door:
    """Checks a request, finds its handler, and turns what went wrong into a reply."""

    def __init__(self, service: Service, routes: RouteTable, guards: Guards) -> None:
        self._service = service
        self._routes = routes
        self._guards = guards

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; broad, because one bad request must not end the daemon."""
        started = request[STARTED] = time.perf_counter()
        try:
            response = await self._answer(request)
        except asyncio.CancelledError:
            # The client has gone, perhaps just after the last byte of a stream: what was begun is logged as it was.
            begun: web.StreamResponse = request.get(PREPARED) or web.Response(status=CLIENT_GONE)
            _log(request, begun, started)
            raise
        except LlmdError as error:
            response = problem_of(error).response()
        except ConnectionError:
            response = web.Response(status=CLIENT_GONE)
        except web.HTTPRequestEntityTooLarge:
            response = problems.too_large(self._service.config.max_body).response()
        except Exception:
            logger.exception("request_failed", extra={"method": request.method, "path": request.path})
            response = problems.INTERNAL.response()
        if not response.prepared:
            response.headers[REQUEST_ID] = _request_id(request.headers)
        _log(request, response, started)
        return response

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        peer = peer_of(request)
        self._guards.check(peer, request.headers)
        found = match(self._routes, request.method, request.path)
        if request.method == "OPTIONS":
            return _options(request, found.allowed)
        if found.route is None:
            return self._refusal(request, found.allowed)
        if found.route.path.startswith(ADMIN_PREFIX) and not peer.is_this_machine:
            raise ForbiddenError(
                f"{request.path} answers this machine alone", code="local_only", hint="use the Unix socket"
            )
        # Reading never waits for a drain: readiness and lists are asked for until the end.
        counted = nullcontext() if found.route.method == "GET" else self._service.activity.request()
        with counted:
            response: web.StreamResponse = await found.route.handler(request, self._service)
        return response

    def _refusal(self, request: web.Request, allowed: frozenset[str]) -> web.Response:
        if not allowed:
            return problems.unknown_url(request.path).response()
        return problems.wrong_method(request.method, request.path, allowed).response()

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Headers of every reply, streams included."""
        request_id = response.headers.setdefault(REQUEST_ID, _request_id(request.headers))
        response.headers["request-id"] = request_id
        request[PREPARED] = response
        response.headers["openai-processing-ms"] = f"{_elapsed_ms(request[STARTED]):.0f}"
        response.headers["server"] = f"llmd/{self._service.version}"
        origin = request.headers.get("Origin")
        if origin is not None and self._guards.origin_allowed(origin):
            response.headers.update(cors_headers(origin))


def _log(request: web.Request, response: web.StreamResponse, started: float) -> None:
    fields = {
        "request_id": response.headers.get(REQUEST_ID) or _request_id(request.headers),
        "path": request.path,
        "status": response.status,
        "ms": round(_elapsed_ms(started), 1),
    }
    logger.info("request", extra=fields)


def _elapsed_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1e3


def build_app(service: Service, routes: RouteTable, guards: Guards) -> web.Application:
    """The application that serves ``routes``."""
    door = Door(service, routes, guards)

    @web.middleware
    async def every_request(request: web.Request, handler: Handler) -> web.StreamResponse:  # noqa: ARG001 - by name
        return await door(request)

    # Not a route: paths with a line break, `OPTIONS *` and CONNECT would slip past every pattern.
    app = web.Application(client_max_size=service.config.max_body, middlewares=[every_request])
    app.on_response_prepare.append(door.add_headers)
    return app


def _options(request: web.Request, allowed: frozenset[str]) -> web.Response:
    headers = {"Allow": ", ".join(sorted(allowed or {"OPTIONS"}))}
    if "Origin" in request.headers:
        headers |= preflight_headers(request.headers.get("Access-Control-Request-Headers", ""))
    return web.Response(status=204, headers=headers)


def _request_id(headers: Mapping[str, str]) -> str:
    given = headers.get(REQUEST_ID, "")
    if given and len(given) <= MAX_REQUEST_ID_LEN and given.isprintable() and given.isascii():
        return given
    return f"req_{uuid.uuid4().hex}"
