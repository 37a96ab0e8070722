"""Logprobs in OpenAI's two formats: entries for chat, parallel lists for completions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llmd.chat.answers.answer_text import AnswerToken
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.server.generation.logprobs import finite, logprob_entries


def chat_logprobs(tokenizer: Tokenizer, tokens: Iterable[AnswerToken]) -> dict[str, Any]:
    """Return ``choices[].logprobs`` of a chat answer or chunk."""
    return {"content": logprob_entries(tokenizer, tokens), "refusal": None}


def completion_logprobs(tokenizer: Tokenizer, tokens: Iterable[AnswerToken]) -> dict[str, Any]:
    """Return ``choices[].logprobs`` of a completion or chunk. A prompt's first token has null."""
    listed = list(tokens)
    return {
        "tokens": [_name(tokenizer, token.token_id) for token in listed],
        "token_logprobs": [None if token.logprob is None else finite(token.logprob) for token in listed],
        "top_logprobs": [_top(tokenizer, token) for token in listed],
        "text_offset": [token.start for token in listed],
    }


def _top(tokenizer: Tokenizer, token: AnswerToken) -> dict[str, float] | None:
    if token.logprob is None:
        return None
    return {_name(tokenizer, other.token_id): finite(other.logprob) for other in token.top}


def _name(tokenizer: Tokenizer, token_id: int) -> str:
    """Return a token's text. A part of a character is written as OpenAI does, so that names differ."""
    content = tokenizer.token_bytes(token_id)
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)
