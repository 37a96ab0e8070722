"""Errors as Anthropic's clients read them."""

from __future__ import annotations

from llmd.api.problem import ErrorReply, ErrorShape, Problem

OVERLOADED = 529
"""Where OpenAI has 503: Claude Code waits and tries again on this status alone."""

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
    """Anthropic's error object; the types are those that the SDK knows."""
    status = OVERLOADED if problem.status == 503 else problem.status
    kind = _TYPES.get(status, INVALID_REQUEST if status < 500 else "api_error")
    error = {"type": kind, "message": _message(problem)}
    return ErrorReply(status, {"type": "error", "error": error, "request_id": request_id})


ANTHROPIC = ErrorShape(write_error, paths=("/v1/messages",), header="anthropic-version")


def _message(problem: Problem) -> str:
    """The message, with the field that it is about: the object has no place of its own for that."""
    if problem.code == "context_length_exceeded":
        # The service's own words: agents look for them before they compact a conversation.
        lengths = problem.extra
        return f"prompt is too long: {lengths['n_prompt_tokens']} tokens > {lengths['n_ctx']} maximum"
    if problem.param is None or problem.param in problem.message:
        return problem.message
    return f"{problem.param}: {problem.message}"
