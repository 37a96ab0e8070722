"""Writes chat answers in OpenAI's format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llmd.api.parts import CallStart
from llmd.chat.answers.answer_text import AnswerToken, Piece
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.server.dialects.openai.chat_calls import CallDeltas, CallForms
from llmd.server.dialects.openai.chat_parts import PLAIN, deltas_of, finish_of, last_deltas, message_of
from llmd.server.dialects.openai.logprobs import chat_logprobs
from llmd.server.dialects.openai.reply import ReplyHead
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prompt_logprobs import prompt_entries

CHUNK = "chat.completion.chunk"


class ChatShape:
    """One chat answer. Clients concatenate the strings of deltas, so the role is sent only once."""

    def __init__(
        self,
        head: ReplyHead,
        request: GenerationRequest,
        tokenizer: Tokenizer,
        *,
        return_token_ids: bool,
        forms: CallForms = PLAIN,
    ) -> None:
        self._head = head
        self._request = request
        self._tokenizer = tokenizer
        self._return_token_ids = return_token_ids
        self._forms = forms
        self._calls: dict[int, CallDeltas] = {}
        self._begun: set[int] = set()
        self._with_calls: set[int] = set()
        self._answers: dict[int, list[Piece]] = {index: [] for index in range(request.n)}

    def chunks(self, index: int, piece: Piece) -> Iterator[dict[str, Any]]:
        if index not in self._begun:
            yield self._opening(index)
        calls = self._calls.setdefault(index, CallDeltas(self._forms))
        deltas = [*deltas_of(piece.parts, calls)]
        if piece.finish is not None:
            deltas += last_deltas(calls)
        if any(isinstance(part, CallStart) for part in piece.parts):
            self._with_calls.add(index)
        if not deltas and piece.tokens and self._request.sampling.logprobs is not None:
            deltas = [{"content": ""}]
        for delta in deltas:
            yield self._chunk(index, delta, piece)
            piece = Piece("", finish=piece.finish)
        if piece.finish is not None:
            yield self._chunk(index, {}, piece)

    def add(self, index: int, piece: Piece) -> None:
        self._answers[index].append(piece)

    def body(self) -> dict[str, Any]:
        choices = [self._choice(index, pieces) for index, pieces in self._answers.items() if pieces]
        body = self._head.envelope("chat.completion", choices) | {"service_tier": "default"}
        return body | self._prompt_ids() | self._prompt_logprobs()

    def without_choices(self) -> dict[str, Any]:
        return self._head.envelope(CHUNK, [])

    def _opening(self, index: int) -> dict[str, Any]:
        first = not self._begun
        self._begun.add(index)
        chunk = self._chunk(index, {"role": "assistant", "content": ""}, Piece(""))
        return chunk | (self._prompt_ids() if first else {})

    def _chunk(self, index: int, delta: dict[str, Any], piece: Piece) -> dict[str, Any]:
        has_calls = index in self._with_calls
        finish = (
            None if delta else finish_of(piece.finish, has_calls=has_calls, is_legacy=self._forms.is_legacy)
        )
        choice = {
            "index": index,
            "delta": delta,
            "logprobs": self._logprobs(piece.tokens) if piece.tokens else None,
            "finish_reason": finish,
        }
        return self._head.envelope(CHUNK, [choice | self._token_ids(piece.token_ids)])

    def _choice(self, index: int, pieces: list[Piece]) -> dict[str, Any]:
        tokens = tuple(token for piece in pieces for token in piece.tokens)
        parts = [part for piece in pieces for part in piece.parts]
        has_calls = any(isinstance(part, CallStart) for part in parts)
        choice = {
            "index": index,
            "message": message_of(parts, self._forms),
            "logprobs": self._logprobs(tokens),
            "finish_reason": finish_of(
                pieces[-1].finish, has_calls=has_calls, is_legacy=self._forms.is_legacy
            ),
        }
        return choice | self._token_ids(tuple(i for piece in pieces for i in piece.token_ids))

    def _logprobs(self, tokens: tuple[AnswerToken, ...]) -> dict[str, Any] | None:
        if self._request.sampling.logprobs is None:
            return None
        return chat_logprobs(self._tokenizer, tokens)

    def _prompt_ids(self) -> dict[str, Any]:
        return {"prompt_token_ids": self._request.prompts[0]} if self._return_token_ids else {}

    def _prompt_logprobs(self) -> dict[str, Any]:
        wanted, scores = self._request.prompt_logprobs, self._answers[0][0].prompt
        if wanted is None or scores is None:
            return {}
        prompt = self._request.prompts[0]
        return {"prompt_logprobs": prompt_entries(self._tokenizer, prompt, scores, wanted)}

    def _token_ids(self, token_ids: tuple[int, ...]) -> dict[str, Any]:
        return {"token_ids": token_ids} if self._return_token_ids else {}
