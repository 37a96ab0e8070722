"""Tokens of one sequence to the pieces of text that its reader gets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from llmd.api.messages import TokenOutput
from llmd.api.parts import AnswerPart, Text
from llmd.chat.detokenizer import IncrementalDetokenizer
from llmd.chat.stop_strings import StopStringMatcher
from llmd.chat.tokenizer import Tokenizer


class Alternative(Struct, frozen=True):
    """A token that could have stood at a place, with its natural-log probability before temperature."""

    token_id: int
    logprob: float


class AnswerToken(Struct, frozen=True):
    """A token of an answer. ``start`` is where its text begins, in characters of the answer."""

    token_id: int
    start: int
    logprob: float | None = None
    top: tuple[Alternative, ...] = ()


class Piece(Struct, frozen=True):
    """Text that may be sent, with the tokens that it covers.

    ``finish`` is ``stop`` or ``length`` on the last piece; ``stop`` is the stop string that ended the answer.
    ``token_ids`` are those since the last piece, also those without text of their own, as the stop token.
    """

    text: str
    tokens: tuple[AnswerToken, ...] = ()
    token_ids: tuple[int, ...] = ()
    finish: str | None = None
    stop: str | None = None

    @property
    def parts(self) -> tuple[AnswerPart, ...]:
        """What the text means: for a model without calls and reasoning, itself."""
        return (Text(self.text),) if self.text else ()


class AnswerText:
    """Holds back half characters and what may become a stop string; tokens wait for their text."""

    def __init__(
        self, tokenizer: Tokenizer, stops: Sequence[str], *, skip_special: bool, at_text_start: bool
    ) -> None:
        self._detokenizer = IncrementalDetokenizer(
            tokenizer, at_text_start=at_text_start, skip_special=skip_special
        )
        self._matcher = StopStringMatcher(stops)
        self._waiting: deque[AnswerToken] = deque()
        self._new_ids: list[int] = []
        self._decoded_len = 0
        self._sent_len = 0

    def feed(self, token: TokenOutput) -> Piece | None:
        """Take the next token. None: nothing may be sent yet. After a piece with ``finish`` nothing may be fed."""
        self._new_ids.append(token.token)
        decoded = ""
        if token.finish != "stop":
            self._waiting.append(_answer_token(token, self._decoded_len))
            decoded = self._detokenizer.feed(token.token)
        if token.finish is not None:
            decoded += self._detokenizer.finish()
        self._decoded_len += len(decoded)
        matched = self._matcher.feed(decoded)
        if matched.stop is not None:
            return self._piece(matched.text, "stop", matched.stop)
        if token.finish is not None:
            return self._piece(matched.text + self._matcher.finish(), token.finish)
        return self._piece(matched.text) if matched.text else None

    def _piece(self, text: str, finish: str | None = None, stop: str | None = None) -> Piece:
        self._sent_len += len(text)
        # The last token of an answer that ends by itself may have no text: it is counted all the same.
        everything = finish is not None and stop is None
        tokens = []
        while self._waiting and (everything or self._waiting[0].start < self._sent_len):
            tokens.append(self._waiting.popleft())
        ids, self._new_ids = tuple(self._new_ids), []
        return Piece(text, tuple(tokens), ids, finish, stop)


def _answer_token(token: TokenOutput, start: int) -> AnswerToken:
    found = token.logprobs
    if found is None:
        return AnswerToken(token.token, start)
    top = tuple(Alternative(i, p) for i, p in zip(found.top_ids, found.top, strict=True))
    return AnswerToken(token.token, start, found.chosen, top)
