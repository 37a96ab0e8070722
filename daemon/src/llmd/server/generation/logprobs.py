"""Tokens with their logprobs as entries, which the dialects share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llmd.chat.answers.answer_text import AnswerToken
from llmd.chat.tokenizers.tokenizer import Tokenizer

# JSON has no infinity; OpenAI writes this for what cannot happen.
LEAST_LOGPROB = -9999.0


def logprob_entries(tokenizer: Tokenizer, tokens: Iterable[AnswerToken]) -> list[dict[str, Any]]:
    """One entry for each token: ``token``, ``logprob``, ``bytes``, and as ``top_logprobs`` those of its alternatives."""
    return [
        _entry(tokenizer, token.token_id, token.logprob)
        | {"top_logprobs": [_entry(tokenizer, other.token_id, other.logprob) for other in token.top]}
        for token in tokens
    ]


def finite(logprob: float | None) -> float:
    """A logprob that JSON can hold."""
    return LEAST_LOGPROB if logprob is None else max(logprob, LEAST_LOGPROB)


def _entry(tokenizer: Tokenizer, token_id: int, logprob: float | None) -> dict[str, Any]:
    return {
        "token": tokenizer.token_text(token_id),
        "logprob": finite(logprob),
        "bytes": list(tokenizer.token_bytes(token_id)),
    }
