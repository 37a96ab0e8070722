"""Errors in Ollama's format: only a text."""

from __future__ import annotations

from llmd.api.problem import ErrorReply, ErrorShape, Problem


def write_error(problem: Problem, _request_id: str) -> ErrorReply:
    """Return only the message. If the prompt is too long, it mentions ``num_ctx``, which clients can set."""
    return ErrorReply(problem.status, {"error": _message(problem)})


OLLAMA = ErrorShape(write_error, paths=("/api",))


def _message(problem: Problem) -> str:
    if problem.code != "context_length_exceeded":
        return problem.message
    lengths = problem.extra
    return (
        f"the prompt has {lengths['n_prompt_tokens']} tokens, but num_ctx allows {lengths['n_ctx']}: shorten the prompt, "
        "raise num_ctx if the model supports more, or send truncate: true"
    )
