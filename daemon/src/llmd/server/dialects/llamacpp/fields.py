"""Fields of ``/completion`` and ``/infill``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, structs

from llmd.api.messages import Grammar
from llmd.api.samplers import LLAMA_CPP_ORDER
from llmd.chat.generation_defaults import GenerationDefaults
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.grammar.closed_objects import close_objects
from llmd.grammar.json_schema import schema_grammar
from llmd.requests.ending import EndChoice
from llmd.requests.fields import BadRequestError, RequestFields, is_token_id
from llmd.requests.mixed_text import MixedText, read_mixed_texts
from llmd.requests.number import Number
from llmd.requests.sampling import (
    LLAMA_CPP_READERS,
    MAX_TEMPERATURE,
    MAX_TOKENS,
    SamplingChoice,
    read_sampling,
)

MAX_STOPS = 64
MAX_PROBS = 20
MAX_PROMPTS = 256
MAX_RESPONSE_FIELDS = 256
MAX_BIAS = 1000.0
NEVER = -MAX_BIAS

CHANGED = LLAMA_CPP_READERS | {"temperature": Number(-1.0, MAX_TEMPERATURE, floor=0.0)}
"""Fields that llama-server reads in another way."""

# llama-server's defaults, for values that neither the request nor the model's authors set.
FALLBACKS = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}

Bias = tuple[int | str, float]


class Settings(Struct, frozen=True):
    """The fields of a request, except prompt and model."""

    sampling: SamplingChoice
    end: EndChoice
    bias: tuple[Bias, ...]
    """Biases of token ids or texts; the tokens of a text are known only once the model is loaded."""
    grammar: Grammar | None
    n_probs: int | None
    post_sampling_probs: bool
    return_tokens: bool
    response_fields: tuple[str, ...]
    """The fields that the answer contains, as paths with slashes; empty: all fields."""
    stream: bool

    def choice(self, tokenizer: Tokenizer, defaults: GenerationDefaults) -> SamplingChoice:
        """Return the sampling for one model: the bias of a text applies to each of its tokens."""
        missing = {
            name: value
            for name, value in FALLBACKS.items()
            if getattr(self.sampling, name) is None and getattr(defaults, name) is None
        }
        return structs.replace(
            self.sampling,
            **missing,
            logit_bias=tuple(self._bias(tokenizer)),
            logprobs=self.n_probs,
            post_sampling=self.post_sampling_probs,
        )

    def _bias(self, tokenizer: Tokenizer) -> Iterator[tuple[int, float]]:
        for token, bias in self.bias:
            if isinstance(token, int):
                yield token, bias
            else:
                yield from ((i, bias) for i in tokenizer.encode(token, add_special=False))


def read_settings(fields: RequestFields) -> Settings:
    """Read all fields except the prompt and the model.

    Raises:
        BadRequestError: a field has an invalid value.
    """
    n_probs = fields.integer("n_probs", 0, MAX_PROBS)
    limit = fields.integer("n_predict", -2, MAX_TOKENS)
    return Settings(
        sampling=read_sampling(
            fields, changed=CHANGED, without=("logit_bias",), default_order=LLAMA_CPP_ORDER
        ),
        end=EndChoice(
            max_tokens=None if limit is None or limit < 0 else limit,
            strings=fields.strings("stop", MAX_STOPS),
            ignore_eos=fields.boolean("ignore_eos"),
        ),
        bias=read_bias(fields),
        grammar=read_grammar(fields),
        n_probs=n_probs or None,
        post_sampling_probs=fields.boolean("post_sampling_probs"),
        return_tokens=fields.boolean("return_tokens"),
        response_fields=fields.strings("response_fields", MAX_RESPONSE_FIELDS),
        stream=fields.boolean("stream"),
    )


def read_prompts(fields: RequestFields) -> tuple[MixedText, ...]:
    """The prompts of a completion."""
    return read_mixed_texts(fields, "prompt", MAX_PROMPTS)


def read_grammar(fields: RequestFields) -> Grammar | None:
    """Read ``json_schema``, whose objects allow no undeclared properties, or ``grammar`` in GBNF.

    Raises:
        BadRequestError: both are given.
    """
    schema, gbnf = fields.value("json_schema"), fields.text("grammar")
    if schema and gbnf:
        raise BadRequestError(
            "json_schema and grammar are mutually exclusive", code="invalid_value", param="grammar"
        )
    if schema is not None and not isinstance(schema, dict):
        raise fields.invalid("json_schema", "a JSON schema")
    if schema is not None:
        return schema_grammar(close_objects(schema))
    return Grammar("gbnf", gbnf) if gbnf else None


def read_bias(fields: RequestFields) -> tuple[Bias, ...]:
    """Read pairs of a token id or text and a number to add to its logit; false forbids it.
    An object maps ids to numbers.
    """
    value = fields.value("logit_bias") or []
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
    ):
        raise fields.invalid("logit_bias", "a list of pairs [token id or text, number or false]")
    return tuple((_biased(fields, token), _summand(fields, bias)) for token, bias in pairs)


def _biased(fields: RequestFields, token: Any) -> int | str:
    if is_token_id(token) or (isinstance(token, str) and token):
        return int(token) if str(token).isdecimal() else token
    raise fields.invalid("logit_bias", "a list of pairs [token id or text, number or false]")


def _summand(fields: RequestFields, bias: Any) -> float:
    if bias is False:
        return NEVER
    if isinstance(bias, bool) or not isinstance(bias, int | float) or abs(bias) > MAX_BIAS:
        raise fields.invalid("logit_bias", f"numbers from {-MAX_BIAS} to {MAX_BIAS}, or false")
    return float(bias)
