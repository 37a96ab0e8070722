"""Fields of a beam search, under vLLM's names; ``early_stopping`` is that of transformers. `llmd.Engine` shares some."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from llmd.api.messages import BeamParams
from llmd.server.errors import BadRequestError
from llmd.server.http.request_fields import RequestFields

MAX_CHOICES = 16
MAX_LENGTH_PENALTY = 10.0
DRAWN: Mapping[str, Collection[Any]] = {
    "temperature": (0, 1),
    "top_k": (-1, 0),
    "top_p": (1,),
    "min_p": (0,),
    "typical_p": (0, 1),
    "top_n_sigma": (-1, 0),
    "dynatemp_range": (0,),
    "xtc_probability": (0,),
    "mirostat": (0,),
}
"""What narrows draws, of which a search makes none, with the values that narrow nothing."""


def read_beams(fields: RequestFields, n: int) -> BeamParams | None:
    """A search with ``best_of`` beams, else ``n``, that returns the best ``n``; None where draws are wanted.

    Raises:
        BadRequestError: fields are out of range, or ask for what a search cannot give.
    """
    if not fields.boolean("use_beam_search"):
        return None
    width = fields.integer("best_of", n, MAX_CHOICES)
    return read_search(fields, n if width is None else width, n)


def read_search(fields: RequestFields, width: int, best: int) -> BeamParams:
    """``length_penalty`` and ``early_stopping`` of a search with so many beams.

    Raises:
        BadRequestError: they are out of range.
    """
    length_penalty = fields.number("length_penalty", -MAX_LENGTH_PENALTY, MAX_LENGTH_PENALTY)
    return BeamParams(width, best, 1.0 if length_penalty is None else length_penalty, _early_stopping(fields))


def refuse_scores(beams: BeamParams | None, prompt_logprobs: int | None, param: str) -> None:
    """Raises `BadRequestError` where the prompt of a search is to be scored."""
    if beams is not None and prompt_logprobs is not None:
        raise BadRequestError(
            f"{param} does not go with use_beam_search",
            code="unsupported_parameter",
            param=param,
            hint="score the prompt in a request of its own",
        )


def unused_by(beams: BeamParams | None, fields: RequestFields) -> tuple[str, ...]:
    """Fields that a search has no use for, though they were read."""
    given = {name: fields.value(name) for name in DRAWN} if beams is not None else {}
    return tuple(
        name
        for name, value in given.items()
        if value is not None and not any(float(value) == neutral for neutral in DRAWN[name])
    )


def _early_stopping(fields: RequestFields) -> bool | Literal["never"]:
    if fields.value("early_stopping") == "never":
        return "never"
    try:
        return fields.boolean("early_stopping")
    except BadRequestError:
        raise fields.invalid("early_stopping", 'true, false or "never"') from None
