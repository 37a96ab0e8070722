"""Request fields that chat and completions share:
the supported ones, and those refused unless they change nothing.

Every other field is accepted and named in ``x-llmd-ignored``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmd.requests.beams import MAX_CHOICES
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.sampling import MAX_TOKENS

MAX_TOP_LOGPROBS = 20
MAX_PRIORITY = 1 << 31
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

REFUSED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "truncate_prompt_tokens": ((), "prompts are never cut"),
}


def refuse(fields: RequestFields, refused: Mapping[str, tuple[tuple[Any, ...], str]]) -> None:
    """Refuse every field of the table whose value is not neutral."""
    for name, (neutral, why) in refused.items():
        fields.refuse(name, neutral, why)


def read_max_tokens(fields: RequestFields) -> int | None:
    """Read ``max_completion_tokens``, or its older name ``max_tokens``."""
    old = fields.integer("max_tokens", 0, MAX_TOKENS)
    new = fields.integer("max_completion_tokens", 0, MAX_TOKENS)
    return old if new is None else new


def read_chat_logprobs(fields: RequestFields) -> int | None:
    """Return how many alternatives are returned with each token; None: no logprobs.

    Raises:
        BadRequestError: ``top_logprobs`` without ``logprobs``.
    """
    wanted = fields.boolean("logprobs")
    top = fields.integer("top_logprobs", 0, MAX_TOP_LOGPROBS)
    if top and not wanted:
        raise BadRequestError("top_logprobs needs logprobs: true", code="invalid_value", param="top_logprobs")
    return (top or 0) if wanted else None


def read_prompt_logprobs(fields: RequestFields, *, streamed: bool) -> int | None:
    """Return how many alternatives are returned with each prompt token (vLLM); None: no prompt logprobs.

    Raises:
        BadRequestError: the answer is streamed; a stream cannot contain them.
    """
    if fields.value("prompt_logprobs") is False:
        return None
    wanted = fields.integer("prompt_logprobs", 0, MAX_TOP_LOGPROBS)
    if wanted is not None and streamed:
        raise BadRequestError(
            "prompt_logprobs are not streamed",
            code="invalid_value",
            param="prompt_logprobs",
            hint="leave stream out",
        )
    return wanted


def read_choices(fields: RequestFields) -> int:
    """Return how many answers each prompt gets."""
    n = fields.integer("n", 1, MAX_CHOICES)
    return 1 if n is None else n
