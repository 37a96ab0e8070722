"""Errors in Anthropic's format."""

from __future__ import annotations

from llmd.api.problem import ErrorReply, ErrorShape, Problem

OVERLOADED = 529
"""Sent in place of 503: Claude Code waits and retries only on this status."""

INVALID_REQUEST = "invalid_request_error"
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


def write_error(problem: Problem, request_id: str) -> ErrorReply:
    """Return Anthropic's error object, with the types that its SDK knows."""
    status = OVERLOADED if problem.status == 503 else problem.status
    kind = _TYPES.get(status, INVALID_REQUEST if status < 500 else "api_error")
    error = {"type": kind, "message": _message(problem)}
    return ErrorReply(status, {"type": "error", "error": error, "request_id": request_id})


ANTHROPIC = ErrorShape(write_error, paths=("/v1/messages",), header="anthropic-version")


def _message(problem: Problem) -> str:
    """Return the message with the name of the field, since the object has no separate key for that."""
    if problem.code == "context_length_exceeded":
        # Anthropic's wording: agents look for it to decide when to compact a conversation.
        lengths = problem.extra
        return f"prompt is too long: {lengths['n_prompt_tokens']} tokens > {lengths['n_ctx']} maximum"
    if problem.param is None or problem.param in problem.message:
        return problem.message
    return f"{problem.param}: {problem.message}"
