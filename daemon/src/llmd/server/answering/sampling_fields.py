"""How tokens are drawn, by the fields that OpenAI's routes and `llmd.Engine` have in common, under OpenAI's and vLLM's names."""

from __future__ import annotations

from msgspec import structs

from llmd.chat.sampling_choice import SamplingChoice
from llmd.server.answering.sampler_fields import MAX_PENALTY, read_bad_words, read_samplers
from llmd.server.http.request_fields import RequestFields, is_token_id

MAX_TOKENS = (1 << 31) - 1
ANY_SEED = 1 << 256
MAX_BIAS = 100.0


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
