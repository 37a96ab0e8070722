"""Tokens and their logprobs as JSON entries, shared by the dialects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llmd.chat.answers.answer_text import AnswerToken
from llmd.chat.tokenizers.tokenizer import Tokenizer

# JSON has no infinity; OpenAI writes this for impossible tokens.
LEAST_LOGPROB = -9999.0


def logprob_entries(tokenizer: Tokenizer, tokens: Iterable[AnswerToken]) -> list[dict[str, Any]]:
    """Return an entry for each token: ``token``, ``logprob``, ``bytes``,
    and its alternatives as ``top_logprobs``.
    """
    return [
        _entry(tokenizer, token.token_id, token.logprob)
        | {"top_logprobs": [_entry(tokenizer, other.token_id, other.logprob) for other in token.top]}
        for token in tokens
    ]


def finite(logprob: float | None) -> float:
    """Return a logprob that JSON can represent."""
    return LEAST_LOGPROB if logprob is None else max(logprob, LEAST_LOGPROB)


def _entry(tokenizer: Tokenizer, token_id: int, logprob: float | None) -> dict[str, Any]:
    return {
        "token": tokenizer.token_text(token_id),
        "logprob": finite(logprob),
        "bytes": list(tokenizer.token_bytes(token_id)),
    }
