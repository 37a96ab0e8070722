"""Reads the options of `Engine.generate` like the fields of a request: same names, ranges and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from llmd.api.errors import RequestError
from llmd.api.messages import BeamParams, Grammar
from llmd.embedded.generated import GenerationOptions
from llmd.requests.beams import MAX_CHOICES, read_search
from llmd.requests.ending import EndChoice, read_end
from llmd.requests.fields import RequestFields
from llmd.requests.grammars import read_grammar
from llmd.requests.sampling import MAX_TOKENS, SamplingChoice, read_sampling


class RequestOptions(Struct, frozen=True):
    """The options of one answer, checked."""

    sampling: SamplingChoice
    end: EndChoice
    grammar: Grammar | None
    beams: BeamParams | None
    adapter: str
    """Empty: none."""


def check_names(options: GenerationOptions) -> None:
    """Refuse an option that does not exist, so that a misspelt one is not silently ignored.

    Raises:
        RequestError: an option is unknown; the hint lists the known ones.
    """
    known = GenerationOptions.__annotations__
    _refuse_unknown([name for name in options if name not in known], tuple(known))


def read_options(options: GenerationOptions) -> RequestOptions:
    """Read and check all options except ``system``, which is part of the prompt.

    Raises:
        RequestError: a value is out of range, or two options contradict each other.
    """
    given = dict(options)
    bound = given.get("grammar")
    if isinstance(bound, Grammar):
        del given["grammar"]
    fields = RequestFields({name: plain(value) for name, value in given.items()})
    choice = read_grammar(fields)
    _refuse_unknown(choice.ignored, ("json", "json_object", "regex", "choice", "grammar"))
    if isinstance(bound, Grammar) and choice.grammar is not None:
        raise RequestError(
            f"grammar and {choice.param} both constrain the answer",
            param="grammar",
            hint="give only one of them",
        )
    return RequestOptions(
        sampling=read_sampling(fields, logprobs=0),
        end=read_end(fields, fields.integer("max_tokens", 1, MAX_TOKENS)),
        grammar=bound if isinstance(bound, Grammar) else choice.grammar,
        beams=_beams(fields),
        adapter=fields.text("adapter") or "",
    )


def plain(value: Any) -> Any:
    """Convert a value to JSON types: NumPy numbers and arrays, tuples, sets,
    and mappings with integer keys.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple | set | range) else value


def _beams(fields: RequestFields) -> BeamParams | None:
    width = fields.integer("beam_width", 1, MAX_CHOICES)
    if width is not None:
        return read_search(fields, width, 1)
    if fields.value("length_penalty") is not None or fields.value("early_stopping") is not None:
        raise RequestError(
            "length_penalty and early_stopping need beam_width",
            param="beam_width",
            hint="set beam_width, too",
        )
    return None


def _refuse_unknown(unknown: list[str] | tuple[str, ...], known: tuple[str, ...]) -> None:
    if unknown:
        raise RequestError(
            f"there is no option {unknown[0]}", param=unknown[0], hint=f"the options are {', '.join(known)}"
        )
