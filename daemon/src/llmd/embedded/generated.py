"""What generating takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from msgspec import Struct

from llmd.api.messages import Grammar

Finish = Literal["stop", "length", "cancelled"]
Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]
"""A question, a conversation, or token ids that are continued as they are."""

Callback = Callable[[str, int, float], object]
"""Gets text, id and logprob of each token; returning False ends the answer."""


class GenerationOptions(TypedDict, total=False):
    """How an answer is made; what is left out or None is as the model's makers chose.

    Options have the names, ranges and meaning of the fields of a request (docs/sampling.md, docs/structured-output.md).
    Where they differ: ``max_tokens`` is at least 1, and without it the answer may fill the context window. ``system``
    has instructions that stand before a question; a conversation has its own. ``grammar`` may be a `Grammar`, too.
    ``logit_bias`` has token ids as integers, and whatever holds numbers may be NumPy's.

    ``beam_width`` searches for the likeliest answer with so many beams, and draws nothing; it comes whole, at the end.
    """

    max_tokens: int | None
    min_tokens: int | None
    stop: str | Sequence[str] | None
    stop_token_ids: Sequence[int] | None
    ignore_eos: bool | None
    include_stop_str_in_output: bool | None
    system: str | None
    seed: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    top_n_sigma: float | None
    dynatemp_range: float | None
    dynatemp_exponent: float | None
    xtc_probability: float | None
    xtc_threshold: float | None
    mirostat: Literal[0, 1, 2] | None
    mirostat_tau: float | None
    mirostat_eta: float | None
    samplers: str | Sequence[str] | None
    repetition_penalty: float | None
    repeat_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    repeat_last_n: int | None
    dry_multiplier: float | None
    dry_base: float | None
    dry_allowed_length: int | None
    dry_penalty_last_n: int | None
    dry_sequence_breakers: Sequence[str] | None
    logit_bias: Mapping[int, float] | None
    bad_words: str | Sequence[str] | None
    allowed_token_ids: Sequence[int] | None
    grammar: Grammar | str | None
    json_schema: Mapping[str, Any] | str | None
    response_format: Mapping[str, Any] | None
    structured_outputs: Mapping[str, Any] | None
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
