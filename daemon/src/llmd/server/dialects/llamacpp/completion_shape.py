"""Writes completions in llama-server's format."""

from __future__ import annotations

from typing import Any

from llmd.chat.answers.answer_text import AnswerToken, Piece
from llmd.chat.model_text import ModelText
from llmd.server.dialects.llamacpp.fields import Settings
from llmd.server.dialects.llamacpp.generation_settings import generation_settings
from llmd.server.dialects.llamacpp.probabilities import probability_entries
from llmd.server.generation.generation import Generation

MS = 1e6
_STOP_TYPES = {"length": "limit", "stop": "eos"}
_MISSING = object()


class CompletionShape:
    """The answers of one request, by the index of their prompt."""

    def __init__(self, name: str, settings: Settings, generation: Generation, text: ModelText) -> None:
        self._name = name
        self._settings = settings
        self._generation = generation
        self._text = text
        self._pieces: dict[int, list[Piece]] = {}

    def add(self, index: int, piece: Piece) -> None:
        """Keep a piece of an answer."""
        self._pieces.setdefault(index, []).append(piece)

    def chunk(self, index: int, piece: Piece) -> dict[str, Any]:
        """Return a piece as an event."""
        counts = {
            "tokens_predicted": self._num_tokens(index),
            "tokens_evaluated": len(self._generation.request.prompts[index]),
        }
        chunk = {"index": index, "content": piece.text, "tokens": list(piece.token_ids), "stop": False}
        return chunk | counts | self._probabilities(piece.tokens)

    def last(self, index: int) -> dict[str, Any]:
        """Return the event that ends an answer: everything except its text."""
        return self._chosen(self._ending(index) | {"content": "", "tokens": []})

    def whole(self, index: int) -> dict[str, Any]:
        """Return an answer that was not streamed."""
        pieces = self._pieces[index]
        ids = [i for piece in pieces for i in piece.token_ids] if self._settings.return_tokens else []
        tokens = tuple(token for piece in pieces for token in piece.tokens)
        content = "".join(piece.text for piece in pieces)
        whole = self._ending(index) | {"content": content, "tokens": ids}
        return self._chosen(whole | self._probabilities(tokens))

    def _chosen(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the requested fields of an answer: all, or those in ``response_fields`` that exist."""
        paths = self._settings.response_fields
        if not paths:
            return answer
        found = {path: _value_at(answer, path) for path in paths}
        return {path: value for path, value in found.items() if value is not _MISSING}

    def _ending(self, index: int) -> dict[str, Any]:
        request, piece = self._generation.request, self._pieces[index][-1]
        prompt, num_tokens = request.prompts[index], self._num_tokens(index)
        fills_window = len(prompt) + num_tokens >= self._generation.window
        return {
            "index": index,
            "content": "",
            "tokens": [],
            "stop": True,
            "model": self._name,
            "tokens_predicted": num_tokens,
            "tokens_evaluated": len(prompt),
            "tokens_cached": len(prompt) + num_tokens,
            "prompt": self._text.tokenizer.decode(prompt),
            "truncated": piece.finish == "length" and fills_window,
            "stop_type": "word" if piece.stop is not None else _STOP_TYPES[piece.finish or "length"],
            "stopping_word": piece.stop or "",
            "has_new_line": any("\n" in piece.text for piece in self._pieces[index]),
            "generation_settings": generation_settings(self._settings, request.sampling, self._text.defaults),
            "timings": self._timings(),
        }

    def _num_tokens(self, index: int) -> int:
        return sum(len(piece.token_ids) for piece in self._pieces[index])

    def _timings(self) -> dict[str, Any]:
        """Return llama.cpp's timings; with several prompts, they cover all of them."""
        usage, timing = self._generation.usage, self._generation.timing
        computed = usage.prompt_tokens - usage.cached_tokens
        prefill_ms, decode_ms = timing.prefill_ns / MS, timing.decode_ns / MS
        return {
            "cache_n": usage.cached_tokens,
            **_rate("prompt", computed, prefill_ms),
            **_rate("predicted", usage.completion_tokens, decode_ms),
        }

    def _probabilities(self, tokens: tuple[AnswerToken, ...]) -> dict[str, Any]:
        if self._settings.n_probs is None:
            return {}
        final = self._settings.post_sampling_probs
        return {"completion_probabilities": probability_entries(self._text.tokenizer, tokens, final=final)}


def _value_at(answer: dict[str, Any], path: str) -> Any:
    """Return the value at a slash-separated path, or `_MISSING`."""
    value: Any = answer
    for name in path.split("/"):
        value = value.get(name, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _rate(name: str, count: int, ms: float) -> dict[str, Any]:
    return {
        f"{name}_n": count,
        f"{name}_ms": ms,
        f"{name}_per_token_ms": ms / count if count else 0.0,
        f"{name}_per_second": count / ms * 1e3 if ms else 0.0,
    }
