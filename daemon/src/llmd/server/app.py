"""The aiohttp application: one handler for all requests of all dialects."""

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
from llmd.api.out_of_memory import as_memory_error
from llmd.api.problem import Problem
from llmd.server.errors import ForbiddenError
from llmd.server.http import problems
from llmd.server.http.access import Access
from llmd.server.http.bodies import BODY_TIMEOUT_S
from llmd.server.http.error_shapes import REQUEST_ID, SHAPE, ErrorShapes, error_response
from llmd.server.http.guards import Guards, cors_headers, peer_of, preflight_headers
from llmd.server.http.problems import problem_of
from llmd.server.http.routing import RouteTable, match
from llmd.server.request_record import RequestRecord, asked_timeout_s, begin_record, current_record
from llmd.server.service import Service

logger = logging.getLogger(__name__)

UNIX = "unix"
"""Stands for a client of the Unix socket, which has no address."""

ID_HEADER = "x-request-id"
INTERFACE_HEADER = "x-llmd-interface"
"""Sent by interfaces such as ``llmd tui``, which ask again and again for what they show."""
MAX_REQUEST_ID_LEN = 128

STARTED = web.RequestKey("started", float)
"""The time at which a request arrived."""

PREPARED = web.RequestKey("prepared", web.StreamResponse)
"""A request's response, once it has begun."""

PROBE = web.RequestKey("probe", bool)
"""Whether a request is a health probe."""


class RequestHandler:
    """Checks a request, calls its handler and turns errors into replies."""

    def __init__(
        self, service: Service, routes: RouteTable, shapes: ErrorShapes, guards: Guards, access: Access
    ) -> None:
        self._service = service
        self._routes = routes
        self._shapes = shapes
        self._guards = guards
        self._access = access

    def use(self, routes: RouteTable, shapes: ErrorShapes, guards: Guards) -> None:
        """Answer later requests with these; running ones keep their handlers."""
        self._routes, self._shapes, self._guards = routes, shapes, guards

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer one request. Catches every exception: one bad request must not end the daemon."""
        request[STARTED] = time.perf_counter()
        request[REQUEST_ID] = _request_id(request.headers)
        request[SHAPE] = self._shapes.of(request.path, request.headers)
        record = RequestRecord(
            request[REQUEST_ID],
            started=time.monotonic(),
            traceparent=request.headers.get("traceparent", ""),
        )
        begin_record(record)
        self._service.metrics.begin(record)
        try:
            record.limit(self._service.config.limits.request_timeout_s)
            record.limit(asked_timeout_s(request.headers))
            response = await self._answer(request)
        except asyncio.CancelledError:
            # The client has disconnected, perhaps just after a stream's last byte: log the response that was
            # begun.
            self._end(request, request.get(PREPARED) or web.Response(status=problems.CLIENT_GONE))
            raise
        except ConnectionError:
            response = web.Response(status=problems.CLIENT_GONE)
        except Exception as error:  # noqa: BLE001 - one bad request must not end the daemon
            problem = self._problem(request, error)
            record.error = problem.code or problem.type
            if isinstance(error, ForbiddenError):
                record.key = record.key or error.key
            response = error_response(request, problem)
        self._end(request, response)
        return response

    def _end(self, request: web.Request, response: web.StreamResponse) -> None:
        """Count the request and log it: sizes and times, never texts."""
        record = current_record()
        self._service.metrics.end(record, response.status)
        # Probes are sent often; a reply of `not ready` is a success, too.
        if request.get(PROBE, False) or _is_look(request, response):
            return
        fields = {
            "request_id": record.request_id,
            "path": request.path,
            "status": response.status,
            "ms": round(_elapsed_ms(request[STARTED]), 1),
            "client": peer_of(request).remote or UNIX,
            "key": record.key or None,
            "error": record.error or None,
        }
        if record.model:
            fields |= record.as_log()
        logger.info("request", extra=fields)

    def _problem(self, request: web.Request, error: Exception) -> Problem:
        match error:
            case LlmdError():
                return problem_of(error)
            case web.HTTPRequestEntityTooLarge():
                return problems.too_large(self._service.config.limits.max_body)
            case _ if (memory := as_memory_error(error)) is not None:
                return problem_of(memory)
            case _:
                fields = {"method": request.method, "path": request.path}
                logger.error("request_failed", exc_info=error, extra=fields)
                return problems.INTERNAL

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        peer = peer_of(request)
        self._guards.check(peer, request.headers)
        found = match(self._routes, request.method, request.path)
        if request.method == "OPTIONS":
            return _options(request, found.allowed)
        right = found.route.right if found.route else "use"
        record = current_record()
        record.key = self._access.admit(peer, request.headers, right)
        record.may_manage = self._access.may_manage(peer, record.key)
        if found.route is None:
            return self._refusal(request, found.allowed)
        request[PROBE] = found.route.probe
        record.route = found.route.path
        # Read requests are answered during a drain: clients poll readiness and lists until the end.
        is_admitted = found.route.in_shutdown or found.route.method in {"GET", "HEAD"}
        counted = nullcontext() if is_admitted else self._service.activity.request()
        with counted:
            response: web.StreamResponse = await found.route.handler(request, self._service)
        return response

    def _refusal(self, request: web.Request, allowed: frozenset[str]) -> web.Response:
        if not allowed:
            return error_response(request, problems.unknown_url(request.path))
        return error_response(request, problems.wrong_method(request.method, request.path, allowed))

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers of every reply, streams included."""
        request[PREPARED] = response
        response.headers[ID_HEADER] = response.headers["request-id"] = request[REQUEST_ID]
        response.headers["openai-processing-ms"] = f"{_elapsed_ms(request[STARTED]):.0f}"
        response.headers["server"] = f"llmd/{self._service.version}"
        origin = request.headers.get("Origin")
        if origin is not None and self._guards.origin_allowed(origin):
            response.headers.update(cors_headers(origin))


def _is_look(request: web.Request, response: web.StreamResponse) -> bool:
    """Whether an interface only looked at something, and got it."""
    is_reading = request.method == "GET" or request.path.endswith("/input_tokens")
    return is_reading and response.status < 400 and INTERFACE_HEADER in request.headers


def _elapsed_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1e3


def build_app(service: Service, request_handler: RequestHandler) -> web.Application:
    """Return the application in which one handler answers all requests."""

    @web.middleware
    async def every_request(request: web.Request, handler: Handler) -> web.StreamResponse:  # noqa: ARG001 - by name
        return await request_handler(request)

    # Not a route: paths with a line break, `OPTIONS *` and CONNECT match no pattern.
    app = web.Application(client_max_size=service.config.limits.max_body, middlewares=[every_request])
    app[BODY_TIMEOUT_S] = service.config.limits.body_timeout_s
    app.on_response_prepare.append(request_handler.add_headers)
    return app


def _options(request: web.Request, allowed: frozenset[str]) -> web.Response:
    headers = {"Allow": ", ".join(sorted(allowed or {"OPTIONS"}))}
    if "Origin" in request.headers:
        headers |= preflight_headers(request.headers)
    return web.Response(status=204, headers=headers)


def _request_id(headers: Mapping[str, str]) -> str:
    given = headers.get(ID_HEADER, "")
    if given and len(given) <= MAX_REQUEST_ID_LEN and given.isprintable() and given.isascii():
        return given
    return f"req_{uuid.uuid4().hex}"
