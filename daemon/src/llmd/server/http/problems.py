"""Maps errors to HTTP statuses and OpenAI's types and codes. `error_shapes` formats them."""

from __future__ import annotations

from llmd.api.errors import (
    ConfigError,
    ConflictError,
    ContextLengthError,
    DiskSpaceError,
    EngineCrashedError,
    GrammarError,
    HubError,
    LlmdError,
    MemoryBudgetError,
    ModelError,
    NotFoundError,
    RequestError,
    TemplateError,
)
from llmd.api.problem import Problem
from llmd.requests.fields import BadRequestError
from llmd.server.errors import (
    BusyError,
    CancelledRequestError,
    DeadlineError,
    ForbiddenError,
    RateLimitError,
    UnauthorizedError,
    UnavailableError,
    UnknownRequestError,
)

INVALID_REQUEST = "invalid_request_error"
NOT_FOUND = "not_found_error"
UNAVAILABLE = "unavailable_error"
CLIENT_GONE = 499
"""The status of a request whose client has left, as web servers log it."""


def problem_of(error: LlmdError) -> Problem:
    """Return the status, type and code of an error."""
    text = str(error)
    match error:
        case RequestError():
            return _request_problem(error, text)
        case UnauthorizedError():
            challenge = {"WWW-Authenticate": "Bearer"}
            return Problem(401, "authentication_error", error.code, text, headers=challenge)
        case ForbiddenError():
            return Problem(403, "permission_error", error.code, text)
        case NotFoundError():
            kind = "request" if isinstance(error, UnknownRequestError) else "model"
            param = "request_id" if kind == "request" else "model"
            return Problem(404, NOT_FOUND, f"{kind}_not_found", text, param)
        case BusyError() | CancelledRequestError() | DeadlineError() | UnavailableError():
            return _unanswered_problem(error, text)
        case _:
            return _server_problem(error, text)


def _request_problem(error: RequestError, text: str) -> Problem:
    match error:
        case ContextLengthError():
            lengths = {"n_prompt_tokens": error.prompt_len, "n_ctx": error.context_len}
            return Problem(400, INVALID_REQUEST, "context_length_exceeded", text, error.param, lengths)
        case GrammarError():
            return Problem(400, INVALID_REQUEST, "unsupported_schema", text, error.param)
        case _:
            code = error.code if isinstance(error, BadRequestError) else None
            return Problem(400, INVALID_REQUEST, code, text, error.param)


def _unanswered_problem(
    error: BusyError | CancelledRequestError | DeadlineError | UnavailableError, text: str
) -> Problem:
    match error:
        case CancelledRequestError():
            # No standard status fits, and clients repeat a request after many others (409, 5xx).
            return Problem(499, "cancelled_error", "request_cancelled", text, headers=_retry(None))
        case RateLimitError():
            return Problem(429, "rate_limit_error", error.code, text, headers=_retry(error.retry_after_s))
        case DeadlineError():
            return Problem(408, "timeout_error", "deadline_exceeded", text)
        case BusyError() | UnavailableError():
            return Problem(503, UNAVAILABLE, error.code, text, headers=_retry(error.retry_after_s))


def _store_problem(error: ConflictError | HubError | DiskSpaceError, text: str) -> Problem:
    match error:
        case ConflictError():
            return Problem(409, INVALID_REQUEST, "conflict", text)
        case DiskSpaceError():
            return Problem(507, "server_error", "out_of_disk", text)
        case HubError() if error.exit_code == ForbiddenError.exit_code:
            return Problem(403, "permission_error", "hub_failed", text)
        case HubError():
            return Problem(502, "server_error", "hub_failed", text)


def _server_problem(error: LlmdError, text: str) -> Problem:
    match error:
        case ConflictError() | HubError() | DiskSpaceError():
            return _store_problem(error, text)
        case TemplateError():
            return Problem(400, INVALID_REQUEST, "template_failed", text, "messages")
        case MemoryBudgetError():
            return Problem(503, UNAVAILABLE, "out_of_memory", text)
        case ModelError():
            # Loading it again would fail again.
            return Problem(503, UNAVAILABLE, "model_failed", text, headers=_retry(None))
        case _:
            return Problem(500, "server_error", _server_code(error), text)


def _server_code(error: LlmdError) -> str:
    match error:
        case EngineCrashedError():
            return "engine_crashed"
        case ConfigError():
            return "config_invalid"
        case _:
            return "internal_error"


def _retry(after_s: int | None) -> dict[str, str]:
    if after_s is None:
        return {"x-should-retry": "false"}
    return {"retry-after": str(after_s), "retry-after-ms": str(after_s * 1000)}


def unknown_url(path: str) -> Problem:
    """Return a 404 for a path that no dialect serves."""
    return Problem(404, NOT_FOUND, "unknown_url", f"no such path: {path}")


def wrong_method(method: str, path: str, allowed: frozenset[str]) -> Problem:
    """Return a 405 with the methods that the path accepts."""
    names = ", ".join(sorted(allowed))
    message = f"{path} does not accept {method}, only {names}"
    return Problem(405, INVALID_REQUEST, "method_not_allowed", message, headers={"Allow": names})


def too_large(max_bytes: int) -> Problem:
    """Return a 413 for a body over the limit."""
    message = f"the body is larger than {max_bytes} bytes"
    return Problem(413, INVALID_REQUEST, "request_too_large", message)


INTERNAL = Problem(500, "server_error", "internal_error", "the daemon failed; see the traceback in its log")
