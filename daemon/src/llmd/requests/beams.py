"""Fields of a beam search, under vLLM's names; ``early_stopping`` is that of transformers. `llmd.Engine` shares some."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypedDict

from llmd.api.messages import BeamParams
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.requests.number import Number
from llmd.requests.sampling import READERS

MAX_CHOICES = 16
MAX_LENGTH_PENALTY = 10.0
NARROWING: Mapping[str, Collection[float]] = {
    name: reader.off for name, reader in READERS.items() if isinstance(reader, Number) and reader.narrows
} | {"temperature": (0.0, 1.0)}  # at 0 the best token is taken, as a search does
"""Fields that narrow what tokens are drawn from, with the values that change nothing. A search draws no tokens."""


class SearchOptions(TypedDict, total=False):
    """Options of a beam search in `llmd.Engine`."""

    beam_width: int | None
    """Search for the likeliest answer with this many beams and draw nothing. The answer comes whole, at the end."""
    length_penalty: float | None
    """Exponent of the length by which the score of an answer is divided."""
    early_stopping: bool | Literal["never"] | None
    """When the search ends."""


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
    given = {name: fields.value(name) for name in NARROWING} if beams is not None else {}
    return tuple(
        name
        for name, value in given.items()
        if value is not None and not any(float(value) == neutral for neutral in NARROWING[name])
    )


def _early_stopping(fields: RequestFields) -> bool | Literal["never"]:
    if fields.value("early_stopping") == "never":
        return "never"
    try:
        return fields.boolean("early_stopping")
    except BadRequestError:
        raise fields.invalid("early_stopping", 'true, false or "never"') from None
