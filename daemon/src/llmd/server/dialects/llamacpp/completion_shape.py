"""Completions as llama-server writes them."""

from __future__ import annotations

from typing import Any

import msgspec

from llmd.chat.answers.answer_text import AnswerToken, Piece
from llmd.chat.model_text import ModelText
from llmd.server.answering.generation import Generation
from llmd.server.answering.logprobs import logprob_entries
from llmd.server.dialects.llamacpp.fields import Settings

MS = 1e6
_STOP_TYPES = {"length": "limit", "stop": "eos"}


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
        """A piece as an event."""
        counts = {
            "tokens_predicted": self._num_tokens(index),
            "tokens_evaluated": len(self._generation.request.prompts[index]),
        }
        said = {"index": index, "content": piece.text, "tokens": list(piece.token_ids), "stop": False}
        return said | counts | self._probabilities(piece.tokens)

    def last(self, index: int) -> dict[str, Any]:
        """The event that ends an answer: everything but its text."""
        return self._ending(index) | {"content": "", "tokens": []}

    def whole(self, index: int) -> dict[str, Any]:
        """An answer that was not streamed."""
        pieces = self._pieces[index]
        ids = [i for piece in pieces for i in piece.token_ids] if self._settings.return_tokens else []
        tokens = tuple(token for piece in pieces for token in piece.tokens)
        content = "".join(piece.text for piece in pieces)
        return self._ending(index) | {"content": content, "tokens": ids} | self._probabilities(tokens)

    def _ending(self, index: int) -> dict[str, Any]:
        request, piece = self._generation.request, self._pieces[index][-1]
        prompt = request.prompts[index]
        return {
            "index": index,
            "content": "",
            "tokens": [],
            "stop": True,
            "model": self._name,
            "tokens_predicted": self._num_tokens(index),
            "tokens_evaluated": len(prompt),
            "tokens_cached": len(prompt) + self._num_tokens(index),
            "prompt": self._text.tokenizer.decode(prompt),
            "truncated": False,
            "stop_type": "word" if piece.stop is not None else _STOP_TYPES[piece.finish or "length"],
            "stopping_word": piece.stop or "",
            "has_new_line": any("\n" in piece.text for piece in self._pieces[index]),
            "generation_settings": self._settings_used(),
            "timings": self._timings(),
        }

    def _num_tokens(self, index: int) -> int:
        return sum(len(piece.token_ids) for piece in self._pieces[index])

    def _settings_used(self) -> dict[str, Any]:
        """What the answer was sampled with."""
        request = self._generation.request
        params = request.sampling.params(self._text.defaults, request.sampling.drawn_seed(), 0)
        used = {
            "temperature": params.temperature,
            "top_k": params.top_k,
            "top_p": params.top_p,
            "min_p": params.min_p,
            "repeat_penalty": params.repetition_penalty,
            "presence_penalty": params.presence_penalty,
            "frequency_penalty": params.frequency_penalty,
            "n_predict": -1 if request.end.max_tokens is None else request.end.max_tokens,
            "stop": list(request.end.strings),
            "ignore_eos": request.end.ignore_eos,
            "grammar": msgspec.to_builtins(request.grammar),
        }
        return used | ({} if request.sampling.seed is None else {"seed": params.seed})

    def _timings(self) -> dict[str, Any]:
        """llama.cpp's figures; those of a request with several prompts are of all of them."""
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
        entries = logprob_entries(self._text.tokenizer, tokens)
        for entry, token in zip(entries, tokens, strict=True):
            entry["id"] = token.token_id
            for other, alternative in zip(entry["top_logprobs"], token.top, strict=True):
                other["id"] = alternative.token_id
        return {"completion_probabilities": entries}


def _rate(name: str, count: int, ms: float) -> dict[str, Any]:
    return {
        f"{name}_n": count,
        f"{name}_ms": ms,
        f"{name}_per_token_ms": ms / count if count else 0.0,
        f"{name}_per_second": count / ms * 1e3 if ms else 0.0,
    }
