"""Texts in a request that stand for tokens: DRY's sequence breakers and bad words."""

from __future__ import annotations

from msgspec import Struct

from llmd.chat.tokenizers.token_runs import Breakers, Runs
from llmd.requests.fields import RequestFields

MAX_BREAKERS = 16
MAX_BREAKER_LEN = 40
MAX_WORDS = 1000
ALL_TOKENS = (1 << 31) - 1
"""More tokens than any context has."""


class DryChoice(Struct, frozen=True):
    """`llmd.api.samplers.Dry` with breakers as texts, as in a request."""

    multiplier: float
    base: float = 1.75
    allowed_len: int = 2
    last_n: int = ALL_TOKENS
    breakers: tuple[str, ...] = ("\n", ":", '"', "*")


class NamedTokens(Struct, frozen=True):
    """The texts of a request as tokens of one model."""

    breakers: Breakers = Breakers()
    bad_words: Runs = ()


NO_TOKENS = NamedTokens()


def read_breakers(fields: RequestFields, name: str) -> tuple[str, ...] | None:
    """Read the breakers of DRY; None: not given. An empty list means that there are no breakers.

    Raises:
        BadRequestError: there are too many, or one is empty or too long.
    """
    if fields.value(name) is None:
        return None
    breakers = fields.strings(name, MAX_BREAKERS)
    if not all(0 < len(breaker) <= MAX_BREAKER_LEN for breaker in breakers):
        raise fields.invalid(name, f"texts of 1 to {MAX_BREAKER_LEN} characters")
    return breakers


def read_words(fields: RequestFields, name: str) -> tuple[str, ...]:
    """Read texts that an answer must not contain.

    Raises:
        BadRequestError: there are too many, or one is empty.
    """
    words = fields.strings(name, MAX_WORDS)
    if not all(words):
        raise fields.invalid(name, "a list of texts that are not empty")
    return words
