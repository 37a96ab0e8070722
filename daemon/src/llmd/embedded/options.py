"""What a caller asks of an answer, read as the fields of a request are: the same names, ranges and refusals."""

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
    """An answer as it is wanted."""

    sampling: SamplingChoice
    end: EndChoice
    grammar: Grammar | None
    beams: BeamParams | None


def check_names(options: GenerationOptions) -> None:
    """Refuse an option that does not exist: a misspelt one would be followed by nobody.

    Raises:
        RequestError: its name, and the names there are.
    """
    known = GenerationOptions.__annotations__
    _refuse_unknown([name for name in options if name not in known], tuple(known))


def read_options(options: GenerationOptions) -> RequestOptions:
    """The options as they are wanted; ``system`` is left to the prompt.

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
            f"grammar and {choice.param} both bind the answer", param="grammar", hint="give one of them"
        )
    return RequestOptions(
        sampling=read_sampling(fields, logprobs=0),
        end=read_end(fields, fields.integer("max_tokens", 1, MAX_TOKENS)),
        grammar=bound if isinstance(bound, Grammar) else choice.grammar,
        beams=_beams(fields),
    )


def plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's numbers and arrays, tuples, and objects by token id are Python's."""
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
            "length_penalty and early_stopping go with beam_width", param="beam_width", hint="give it, too"
        )
    return None


def _refuse_unknown(unknown: list[str] | tuple[str, ...], known: tuple[str, ...]) -> None:
    if unknown:
        raise RequestError(
            f"there is no option {unknown[0]}", param=unknown[0], hint=f"the options are {', '.join(known)}"
        )
