"""What generating takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypedDict

from msgspec import Struct

from llmd.api.messages import Grammar

Finish = Literal["stop", "length", "cancelled"]
Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]
"""A question, a conversation, or token ids that are continued as they are."""

Callback = Callable[[str, int, float], object]
"""Gets text, id and logprob of each token; returning False ends the answer."""


class GenerationOptions(TypedDict, total=False):
    """How an answer is made; what is left out or None is as the model's makers chose.

    ``max_tokens``: by default the answer may fill the context window. ``temperature`` 0 takes the likeliest token.
    ``top_k``, ``top_p`` and ``min_p`` narrow what is drawn from. ``seed``: the same seed draws the same tokens.
    ``stop``: a text, or texts, that end the answer and are left out of it. ``system``: instructions that stand before a
    question; a conversation has its own. ``grammar`` binds the answer, for instance
    ``Grammar("json_schema", json.dumps(schema))``; the answer ends where the grammar is complete.

    ``beam_width`` searches for the likeliest answer with so many beams, and draws nothing; it comes whole, at the end.
    ``length_penalty`` above 1 prefers longer answers, 0 adds up log-probabilities. ``early_stopping`` True ends the search
    when so many answers have ended, ``never`` only when no better one can come.
    """

    max_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None
    stop: str | Sequence[str] | None
    system: str | None
    grammar: Grammar | None
    beam_width: int | None
    length_penalty: float | None
    early_stopping: bool | Literal["never"] | None


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
