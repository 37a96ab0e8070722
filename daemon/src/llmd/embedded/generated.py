"""What generating takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from llmd.requests.beams import SearchOptions
from llmd.requests.ending import EndOptions
from llmd.requests.grammars import GrammarOptions
from llmd.requests.sampling import SamplingOptions

Finish = Literal["stop", "length", "cancelled"]
Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]
"""A question, a conversation, or token ids that are continued as they are."""

Callback = Callable[[str, int, float], object]
"""Gets text, id and logprob of each token; returning False ends the answer."""


class GenerationOptions(SamplingOptions, EndOptions, GrammarOptions, SearchOptions, total=False):
    """How an answer is made. An option that is left out or None has the value that the model's makers chose.

    Options have the names, ranges and meaning of request fields (docs/sampling.md, docs/structured-output.md), with these
    differences: ``max_tokens`` is at least 1, and without it the answer may fill the context window; token ids in
    ``logit_bias`` are integers; numbers and arrays may be NumPy's.
    """

    system: str | None
    """Instructions before a question. A conversation has its own."""


class GeneratedToken(Struct, frozen=True):
    """One token of an answer.

    ``text`` is what may be shown with it: nothing while a character, or what may become a stop string, is
    incomplete, and then the text of several tokens. All texts together are the answer. ``logprob`` is the token's
    natural-log probability before temperature. ``finish`` comes with the last token.
    """

    text: str
    id: int
    logprob: float
    finish: Literal["stop", "length"] | None = None


class Generated(Struct, frozen=True):
    """An answer. ``token_ids`` are all that were drawn, a stop token included.

    ``tokens_per_s`` is the rate after the first token, None for fewer than two. ``finish`` is ``stop`` (the model or
    a stop string ended it), ``length`` (``max_tokens`` or the window did) or ``cancelled`` (the callback did).
    """

    text: str
    token_ids: tuple[int, ...]
    finish: Finish
    prompt_tokens: int
    output_tokens: int
    tokens_per_s: float | None
