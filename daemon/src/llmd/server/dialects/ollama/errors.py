"""Errors as Ollama's clients read them: a text."""

from __future__ import annotations

from llmd.api.problem import ErrorReply, ErrorShape, Problem


def write_error(problem: Problem, _request_id: str) -> ErrorReply:
    """The message alone; one about a long prompt speaks of ``num_ctx``, which is what these clients can set."""
    return ErrorReply(problem.status, {"error": _message(problem)})


OLLAMA = ErrorShape(write_error, paths=("/api",))


def _message(problem: Problem) -> str:
    if problem.code != "context_length_exceeded":
        return problem.message
    lengths = problem.extra
    return (
        f"the prompt has {lengths['n_prompt_tokens']} tokens, num_ctx allows {lengths['n_ctx']}: shorten the prompt, "
        "raise num_ctx where the model goes further, or send truncate: true"
    )
