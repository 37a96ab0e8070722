"""Fields of a beam search, with vLLM's names and the ``early_stopping`` of transformers.
`llmd.Engine` shares some.
"""

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
} | {"temperature": (0.0, 1.0)}  # 0 takes the best token, like a search
"""Fields that restrict which tokens are sampled, with the values that change nothing.
A search does not sample.
"""


class SearchOptions(TypedDict, total=False):
    """Options of a beam search in `llmd.Engine`."""

    beam_width: int | None
    """Search for the likeliest answer with this many beams instead of sampling.
    Tokens arrive only at the end.
    """
    length_penalty: float | None
    """The score of an answer is divided by its length to the power of this."""
    early_stopping: bool | Literal["never"] | None
    """When the search ends."""


def read_beams(fields: RequestFields, n: int) -> BeamParams | None:
    """Read a search with ``best_of`` beams, else ``n``, that returns the best ``n``; None:
    the request wants sampling.

    Raises:
        BadRequestError: a field is out of range, or asks for something that a search cannot do.
    """
    if not fields.boolean("use_beam_search"):
        return None
    width = fields.integer("best_of", n, MAX_CHOICES)
    return read_search(fields, n if width is None else width, n)


def read_search(fields: RequestFields, width: int, best: int) -> BeamParams:
    """Read ``length_penalty`` and ``early_stopping`` of a search with ``width`` beams.

    Raises:
        BadRequestError: one of them is out of range.
    """
    length_penalty = fields.number("length_penalty", -MAX_LENGTH_PENALTY, MAX_LENGTH_PENALTY)
    return BeamParams(width, best, 1.0 if length_penalty is None else length_penalty, _early_stopping(fields))


def refuse_scores(beams: BeamParams | None, prompt_logprobs: int | None, param: str) -> None:
    """Raise `BadRequestError` if a beam search also asks for prompt logprobs."""
    if beams is not None and prompt_logprobs is not None:
        raise BadRequestError(
            f"{param} cannot be combined with use_beam_search",
            code="unsupported_parameter",
            param=param,
            hint="score the prompt in a separate request",
        )


def unused_by(beams: BeamParams | None, fields: RequestFields) -> tuple[str, ...]:
    """Return the fields that were read but have no effect on a search."""
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
