"""Tokens of one sequence to the pieces of text that its reader gets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from llmd.api.messages import Logprobs, TokenOutput
from llmd.api.parts import AnswerPart, Text
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.stop_strings import StopStringMatcher
from llmd.chat.tokenizers.detokenizer import IncrementalDetokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer


class Alternative(Struct, frozen=True):
    """A token that could have stood at a place, with its natural-log probability, as in `Logprobs`."""

    token_id: int
    logprob: float


class AnswerToken(Struct, frozen=True):
    """A token of an answer. ``start`` is where its text begins, in characters of the answer."""

    token_id: int
    start: int
    logprob: float | None = None
    top: tuple[Alternative, ...] = ()


class Piece(Struct, frozen=True):
    """What may be sent, with the tokens that it covers.

    ``text`` is that of the answer proper; ``read`` is everything where answers also have reasoning and calls.
    ``finish`` is ``stop`` or ``length`` on the last piece; ``stop`` is the stop string that ended the answer.
    ``token_ids`` are those since the last piece, also those without text of their own, as the stop token. ``prompt`` is on
    the first piece where the prompt was scored: the logprobs of its tokens but the first.
    """

    text: str
    tokens: tuple[AnswerToken, ...] = ()
    token_ids: tuple[int, ...] = ()
    finish: str | None = None
    stop: str | None = None
    read: tuple[AnswerPart, ...] | None = None
    prompt: tuple[Logprobs, ...] | None = None

    @property
    def parts(self) -> tuple[AnswerPart, ...]:
        """What the piece says, in order."""
        if self.read is not None:
            return self.read
        return (Text(self.text),) if self.text else ()


class AnswerText:
    """Holds back half characters and what may become a stop string; tokens wait for their text.

    ``reader`` tells reasoning and calls from text. Stop strings end the text of an answer alone; where it ``shows_stop``,
    the text ends with them, or with the stop token.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stops: Sequence[str],
        *,
        skip_special: bool,
        at_text_start: bool,
        shows_stop: bool = False,
        reader: AnswerReader | None = None,
    ) -> None:
        shown = reader.marks if reader is not None else ()
        self._detokenizer = IncrementalDetokenizer(
            tokenizer, at_text_start=at_text_start, skip_special=skip_special, shown=shown
        )
        self._matcher = StopStringMatcher(stops)
        self._shows_stop = shows_stop
        self._reader = reader
        self._waiting: deque[AnswerToken] = deque()
        self._new_ids: list[int] = []
        self._decoded_len = 0
        self._unsent_len = 0
        self.reasoning_tokens = 0

    def feed(self, token: TokenOutput) -> Piece | None:
        """Take the next token. None: nothing may be sent yet. After a piece with ``finish`` nothing may be fed."""
        self._new_ids.append(token.token)
        decoded = ""
        if token.finish != "stop" or self._shows_stop:
            self._waiting.append(_answer_token(token, self._decoded_len))
            decoded = self._detokenizer.feed(token.token)
        if token.finish is not None:
            decoded += self._detokenizer.finish()
        self._decoded_len += len(decoded)
        read, stop = self._matched(self._read(decoded, ends=token.finish is not None))
        if stop is not None:
            return self._piece(read, "stop", stop)
        if token.finish is not None:
            return self._piece([*read, *self._released()], token.finish)
        return self._piece(read) if read else None

    def _read(self, decoded: str, *, ends: bool) -> list[AnswerPart]:
        reader = self._reader
        if reader is None:
            return [Text(decoded)] if decoded else []
        was_reasoning = reader.is_reasoning
        parts = reader.feed(decoded)
        self.reasoning_tokens += was_reasoning or reader.is_reasoning
        return [*parts, *reader.finish()] if ends else parts

    def _matched(self, parts: Sequence[AnswerPart]) -> tuple[list[AnswerPart], str | None]:
        """The parts that may be sent, and the stop string that ends them."""
        read: list[AnswerPart] = []
        self._unsent_len += sum(len(part.text) for part in parts if isinstance(part, Text))
        for part in parts:
            if not isinstance(part, Text):
                read += [*self._released(), part]
                continue
            matched = self._matcher.feed(part.text)
            shown = matched.text + (matched.stop or "" if self._shows_stop else "")
            self._unsent_len -= len(shown)
            read += [Text(shown)] if shown else []
            if matched.stop is not None:
                return read, matched.stop
        return read, None

    def _released(self) -> list[AnswerPart]:
        """What was held back for a stop string, now that something else follows."""
        held = self._matcher.finish()
        self._unsent_len -= len(held)
        return [Text(held)] if held else []

    def _piece(self, read: list[AnswerPart], finish: str | None = None, stop: str | None = None) -> Piece:
        held = self._reader.held if self._reader is not None else 0
        sent_len = self._decoded_len - held - self._unsent_len
        # The last token of an answer that ends by itself may have no text: it is counted all the same.
        everything = finish is not None and stop is None
        tokens = []
        while self._waiting and (everything or self._waiting[0].start < sent_len):
            tokens.append(self._waiting.popleft())
        ids, self._new_ids = tuple(self._new_ids), []
        text = "".join(part.text for part in read if isinstance(part, Text))
        all_parts = tuple(read) if self._reader is not None else None
        return Piece(text, tuple(tokens), ids, finish, stop, all_parts)


def _answer_token(token: TokenOutput, start: int) -> AnswerToken:
    found = token.logprobs
    if found is None:
        return AnswerToken(token.token, start)
    top = tuple(Alternative(i, p) for i, p in zip(found.top_ids, found.top, strict=True))
    return AnswerToken(token.token, start, found.chosen, top)
