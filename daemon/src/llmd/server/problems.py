"""What an error looks like in HTTP: status, type and code of OpenAI's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from msgspec import Struct

from llmd.api.errors import (
    ContextLengthError,
    EngineCrashedError,
    LlmdError,
    MemoryBudgetError,
    ModelError,
    NotFoundError,
    RequestError,
    TemplateError,
)
from llmd.server.errors import BadRequestError, ForbiddenError, UnavailableError
from llmd.server.json_response import json_response

INVALID_REQUEST = "invalid_request_error"
NOT_FOUND = "not_found_error"
UNAVAILABLE = "unavailable_error"


class Problem(Struct, frozen=True):
    """An error on its way to a client. ``extra`` joins the error object."""

    status: int
    type: str
    code: str | None
    message: str
    param: str | None = None
    extra: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}

    def body(self) -> dict[str, Any]:
        """The error in OpenAI's shape."""
        # Bytes of a header that are no text come as surrogates, which JSON cannot hold.
        message = self.message.encode(errors="backslashreplace").decode()
        error = {"message": message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error | dict(self.extra)}

    def response(self) -> web.Response:
        return json_response(self.body(), status=self.status, headers=self.headers)


def problem_of(error: LlmdError) -> Problem:
    """Status, type and code of an error."""
    text = str(error)
    match error:
        case ContextLengthError():
            lengths = {"n_prompt_tokens": error.prompt_len, "n_ctx": error.context_len}
            return Problem(400, INVALID_REQUEST, "context_length_exceeded", text, error.param, lengths)
        case RequestError():
            code = error.code if isinstance(error, BadRequestError) else None
            return Problem(400, INVALID_REQUEST, code, text, error.param)
        case ForbiddenError():
            return Problem(403, "permission_error", error.code, text)
        case NotFoundError():
            return Problem(404, NOT_FOUND, "model_not_found", text, "model")
        case _:
            return _server_problem(error, text)


def _server_problem(error: LlmdError, text: str) -> Problem:
    match error:
        case UnavailableError():
            return Problem(503, UNAVAILABLE, error.code, text, headers=_retry(error.retry_after_s))
        case TemplateError():
            return Problem(400, INVALID_REQUEST, "template_failed", text, "messages")
        case MemoryBudgetError():
            return Problem(503, UNAVAILABLE, "out_of_memory", text)
        case ModelError():
            # Another try would load it anew, and fail as this one.
            return Problem(503, UNAVAILABLE, "model_failed", text, headers=_retry(None))
        case EngineCrashedError():
            return Problem(500, "server_error", "engine_crashed", text)
        case _:
            return Problem(500, "server_error", "internal_error", text)


def _retry(after_s: int | None) -> dict[str, str]:
    if after_s is None:
        return {"x-should-retry": "false"}
    return {"retry-after": str(after_s), "retry-after-ms": str(after_s * 1000)}


def unknown_url(path: str) -> Problem:
    """404 for a path that no dialect serves."""
    return Problem(404, NOT_FOUND, "unknown_url", f"no such path: {path}")


def wrong_method(method: str, path: str, allowed: frozenset[str]) -> Problem:
    """405, with the methods that the path has."""
    names = ", ".join(sorted(allowed))
    message = f"{path} does not take {method}, only {names}"
    return Problem(405, INVALID_REQUEST, "method_not_allowed", message, headers={"Allow": names})


def too_large(max_bytes: int) -> Problem:
    """413 for a body over the limit."""
    message = f"the body is larger than {max_bytes} bytes"
    return Problem(413, INVALID_REQUEST, "request_too_large", message)


INTERNAL = Problem(500, "server_error", "internal_error", "the daemon failed; its log has the traceback")
