"""Formats errors for the client: in its dialect's format, or OpenAI's on paths that belong to no dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aiohttp import web
from msgspec import structs

from llmd.api.problem import ErrorReply, ErrorShape, Problem
from llmd.server.http.json_response import json_response
from llmd.server.http.routing import normalized

REQUEST_ID = web.RequestKey("request_id", str)
"""A request's id."""

SHAPE = web.RequestKey("error_shape", ErrorShape)
"""The format of a request's errors."""


def openai_error(problem: Problem, _request_id: str) -> ErrorReply:
    """Return OpenAI's error object."""
    error = {
        "message": problem.message,
        "type": problem.type,
        "param": problem.param,
        "code": problem.code,
    }
    return ErrorReply(problem.status, {"error": error | dict(problem.extra)})


OPENAI = ErrorShape(openai_error, paths=("/",))


class ErrorShapes:
    """Error formats by path and header."""

    def __init__(self, shapes: Iterable[ErrorShape]) -> None:
        self._shapes = tuple(shapes)

    def of(self, path: str, headers: Mapping[str, str]) -> ErrorShape:
        """Return the format for a request: that of the dialect with its path, or else with its header."""
        path = normalized(path)
        by_path = (shape for shape in self._shapes if any(_is_below(path, start) for start in shape.paths))
        by_header = (shape for shape in self._shapes if shape.header is not None and shape.header in headers)
        return next(by_path, None) or next(by_header, OPENAI)


def error_reply(request: web.BaseRequest, problem: Problem) -> ErrorReply:
    """Return a problem in the format of the request's dialect, as a body or for a stream that has begun."""
    # Header bytes that are not text are decoded to surrogates, which JSON cannot hold.
    message = problem.message.encode(errors="backslashreplace").decode()
    shape: ErrorShape = request.get(SHAPE, OPENAI)
    return shape.write(structs.replace(problem, message=message), request.get(REQUEST_ID, ""))


def error_response(request: web.BaseRequest, problem: Problem) -> web.Response:
    """Return the complete reply to a request that failed."""
    reply = error_reply(request, problem)
    return json_response(reply.body, status=reply.status, headers=problem.headers)


def _is_below(path: str, start: str) -> bool:
    return any(known == start or known.startswith(f"{start.rstrip('/')}/") for known in (path, f"/v1{path}"))
