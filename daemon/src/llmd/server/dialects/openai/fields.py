"""Request fields that chat and completions share: what is honoured, and what is refused unless it changes nothing.

Every other field is accepted and named in ``x-llmd-ignored``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from llmd.chat.sampling_choice import SamplingChoice
from llmd.server.answering.generation import EndChoice
from llmd.server.answering.sampler_fields import MAX_PENALTY, read_bad_words, read_samplers
from llmd.server.errors import BadRequestError
from llmd.server.http.request_fields import RequestFields, is_token_id

MAX_CHOICES = 16
MAX_STOPS = 16
MAX_TOP_LOGPROBS = 20
MAX_TOKENS = (1 << 31) - 1
ANY_SEED = 1 << 256
MAX_BIAS = 100.0
MAX_PRIORITY = 1 << 31

REFUSED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "truncate_prompt_tokens": ((), "prompts are never cut"),
}


def refuse(fields: RequestFields, refused: Mapping[str, tuple[tuple[Any, ...], str]]) -> None:
    """Refuse every field of the table that has a value of its own."""
    for name, (neutral, why) in refused.items():
        fields.refuse(name, neutral, why)


def read_sampling(fields: RequestFields, logprobs: int | None) -> SamplingChoice:
    """How tokens are drawn. ``top_k`` -1 is off, as vLLM has it; ``repeat_penalty`` is llama.cpp's name."""
    top_k = fields.integer("top_k", -1, MAX_TOKENS)
    top_p = fields.number("top_p", 0.0, 1.0)
    if top_p == 0.0:
        raise fields.invalid("top_p", "above 0 and at most 1")
    repetition_penalty = _positive(fields, "repetition_penalty")
    repeat_penalty = _positive(fields, "repeat_penalty")
    return SamplingChoice(
        temperature=fields.number("temperature", 0.0, 2.0),
        top_k=None if top_k is None else max(top_k, 0),
        top_p=top_p,
        min_p=fields.number("min_p", 0.0, 1.0),
        seed=fields.integer("seed", -ANY_SEED, ANY_SEED),
        logprobs=logprobs,
        repetition_penalty=repeat_penalty if repetition_penalty is None else repetition_penalty,
        frequency_penalty=fields.number("frequency_penalty", -2.0, 2.0) or 0.0,
        presence_penalty=fields.number("presence_penalty", -2.0, 2.0) or 0.0,
        logit_bias=_read_bias(fields),
        bad_words=read_bad_words(fields),
        allowed_ids=fields.token_ids("allowed_token_ids"),
        **structs.asdict(read_samplers(fields)),
    )


def _positive(fields: RequestFields, name: str) -> float | None:
    value = fields.number(name, 0.0, MAX_PENALTY)
    if value == 0.0:
        raise fields.invalid(name, f"above 0 and at most {MAX_PENALTY}")
    return value


def _read_bias(fields: RequestFields) -> tuple[tuple[int, float], ...]:
    """``logit_bias``: summands from -100 to 100 by token id, which JSON writes as text."""
    biases = fields.nested("logit_bias")
    found = [(name, biases.number(name, -MAX_BIAS, MAX_BIAS)) for name in biases.names]
    if not all(name.isascii() and name.isdecimal() and is_token_id(int(name)) for name, _ in found):
        raise fields.invalid("logit_bias", "an object of numbers by token id")
    return tuple((int(name), bias) for name, bias in found if bias is not None)


def read_end(fields: RequestFields, max_tokens: int | None) -> EndChoice:
    """When answers end."""
    return EndChoice(
        max_tokens=max_tokens,
        min_tokens=fields.integer("min_tokens", 0, MAX_TOKENS) or 0,
        strings=fields.strings("stop", MAX_STOPS),
        token_ids=fields.token_ids("stop_token_ids"),
        ignore_eos=fields.boolean("ignore_eos"),
        shows_stop=fields.boolean("include_stop_str_in_output"),
    )


def read_max_tokens(fields: RequestFields) -> int | None:
    """``max_completion_tokens``, or its older name."""
    old = fields.integer("max_tokens", 0, MAX_TOKENS)
    new = fields.integer("max_completion_tokens", 0, MAX_TOKENS)
    return old if new is None else new


def read_chat_logprobs(fields: RequestFields) -> int | None:
    """How many alternatives each token comes with; None: no logprobs.

    Raises:
        BadRequestError: ``top_logprobs`` without ``logprobs``.
    """
    wanted = fields.boolean("logprobs")
    top = fields.integer("top_logprobs", 0, MAX_TOP_LOGPROBS)
    if top and not wanted:
        raise BadRequestError("top_logprobs needs logprobs: true", code="invalid_value", param="top_logprobs")
    return (top or 0) if wanted else None


def read_prompt_logprobs(fields: RequestFields, *, streamed: bool) -> int | None:
    """How many alternatives each token of the prompt comes with, in vLLM's form; None: prompts have no logprobs.

    Raises:
        BadRequestError: the answer is streamed, which has no place for them.
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
    """How many answers each prompt gets."""
    n = fields.integer("n", 1, MAX_CHOICES)
    return 1 if n is None else n
