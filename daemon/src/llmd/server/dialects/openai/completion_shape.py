"""Writes completions in OpenAI's format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import structs

from llmd.api.results import Logprobs
from llmd.chat.answers.answer_text import AnswerToken, Piece
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.server.dialects.openai.logprobs import completion_logprobs
from llmd.server.dialects.openai.reply import ReplyHead
from llmd.server.generation.generation import GenerationRequest
from llmd.server.generation.prompt_logprobs import prompt_entries, prompt_tokens

KIND = "text_completion"


class CompletionShape:
    """The answers of one request. Choice ``prompt index * n + i`` begins with ``echoes[prompt index]``."""

    def __init__(
        self,
        head: ReplyHead,
        request: GenerationRequest,
        tokenizer: Tokenizer,
        echoes: Sequence[str],
        *,
        return_token_ids: bool,
        echoes_scores: bool = False,
        num_prompt_logprobs: int | None = None,
    ) -> None:
        """``echoes_scores``: the logprobs of an answer begin with those of its prompt.
        ``num_prompt_logprobs``: alternatives per token in ``prompt_logprobs``; None: that field is not
        sent.
        """
        self._head = head
        self._request = request
        self._tokenizer = tokenizer
        self._echoes = echoes
        self._return_token_ids = return_token_ids
        self._echoes_scores = echoes_scores
        self._num_prompt_logprobs = num_prompt_logprobs
        self._begun: set[int] = set()
        count = len(request.prompts) * request.n
        self._answers: dict[int, list[Piece]] = {index: [] for index in range(count)}

    def chunks(self, index: int, piece: Piece) -> Iterator[dict[str, Any]]:
        text = piece.text if index in self._begun else self._echo(index) + piece.text
        opening = {} if index in self._begun else self._prompt_ids(index)
        self._begun.add(index)
        if text or ((piece.tokens or piece.prompt) and self._request.sampling.logprobs is not None):
            yield self._chunk(index, text, piece, None, opening)
            piece, opening = Piece("", finish=piece.finish), {}
        if piece.finish is not None:
            yield self._chunk(index, "", piece, piece.finish, opening)

    def add(self, index: int, piece: Piece) -> None:
        self._answers[index].append(piece)

    def body(self) -> dict[str, Any]:
        return self._head.envelope(
            KIND, [self._choice(i, pieces) for i, pieces in self._answers.items() if pieces]
        )

    def without_choices(self) -> dict[str, Any]:
        return self._head.envelope(KIND, [])

    def _chunk(
        self, index: int, text: str, piece: Piece, finish: str | None, opening: dict[str, Any]
    ) -> dict[str, Any]:
        logprobs = self._logprobs(index, piece.tokens, piece.prompt) if piece.tokens or piece.prompt else None
        choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}
        return self._head.envelope(KIND, [choice | opening | self._token_ids(piece.token_ids)])

    def _choice(self, index: int, pieces: list[Piece]) -> dict[str, Any]:
        tokens = tuple(token for piece in pieces for token in piece.tokens)
        choice = {
            "index": index,
            "text": self._echo(index) + "".join(piece.text for piece in pieces),
            "logprobs": self._logprobs(index, tokens, pieces[0].prompt),
            "finish_reason": pieces[-1].finish,
        }
        token_ids = tuple(i for piece in pieces for i in piece.token_ids)
        scores = self._prompt_logprobs(index, pieces[0].prompt)
        return choice | scores | self._prompt_ids(index) | self._token_ids(token_ids)

    def _echo(self, index: int) -> str:
        return self._echoes[index // self._request.n]

    def _logprobs(
        self, index: int, tokens: tuple[AnswerToken, ...], scores: tuple[Logprobs, ...] | None
    ) -> dict[str, Any] | None:
        """Return the logprobs of tokens, after those of the prompt if the answer repeats it."""
        wanted, text_len = self._request.sampling.logprobs, len(self._echo(index))
        if wanted is None:
            return None
        echoed: tuple[AnswerToken, ...] = ()
        if self._echoes_scores and scores is not None:
            echoed = prompt_tokens(self._tokenizer, self._prompt(index), scores, wanted, text_len)
        answered = (structs.replace(token, start=text_len + token.start) for token in tokens)
        return completion_logprobs(self._tokenizer, (*echoed, *answered))

    def _prompt_logprobs(self, index: int, scores: tuple[Logprobs, ...] | None) -> dict[str, Any]:
        if self._num_prompt_logprobs is None or scores is None:
            return {}
        entries = prompt_entries(self._tokenizer, self._prompt(index), scores, self._num_prompt_logprobs)
        return {"prompt_logprobs": entries}

    def _prompt(self, index: int) -> tuple[int, ...]:
        return self._request.prompts[index // self._request.n]

    def _prompt_ids(self, index: int) -> dict[str, Any]:
        return {"prompt_token_ids": self._prompt(index)} if self._return_token_ids else {}

    def _token_ids(self, token_ids: tuple[int, ...]) -> dict[str, Any]:
        return {"token_ids": token_ids} if self._return_token_ids else {}
