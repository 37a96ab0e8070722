"""``completion_probabilities``: tokens of an answer and their probabilities, in llama-server's format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from llmd.chat.answers.answer_text import AnswerToken
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.server.generation.logprobs import logprob_entries


def probability_entries(
    tokenizer: Tokenizer, tokens: Sequence[AnswerToken], *, final: bool
) -> list[dict[str, Any]]:
    """Return each token and its alternatives, with logprobs or, if ``final``, probabilities from 0 to 1."""
    entries = logprob_entries(tokenizer, tokens)
    for entry, token in zip(entries, tokens, strict=True):
        entry["id"] = token.token_id
        for other, alternative in zip(entry["top_logprobs"], token.top, strict=True):
            other["id"] = alternative.token_id
    return [_final(entry) for entry in entries] if final else entries


def _final(entry: dict[str, Any]) -> dict[str, Any]:
    written = {name: value for name, value in entry.items() if name not in {"logprob", "top_logprobs"}}
    written["prob"] = math.exp(entry["logprob"])
    if "top_logprobs" in entry:
        written["top_probs"] = [_final(other) for other in entry["top_logprobs"]]
    return written
