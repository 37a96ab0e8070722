"""Turn the tokens of one sequence into pieces of text for the client."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from llmd.api.parts import AnswerPart, Text
from llmd.api.results import Logprobs, TokenOutput
from llmd.chat.answers.answer_reader import AnswerReader
from llmd.chat.answers.stop_strings import StopStringMatcher
from llmd.chat.tokenizers.detokenizer import IncrementalDetokenizer
from llmd.chat.tokenizers.tokenizer import Tokenizer


class Alternative(Struct, frozen=True):
    """A candidate token at a position with its natural-log probability, as in `Logprobs`."""

    token_id: int
    logprob: float


class AnswerToken(Struct, frozen=True):
    """A token of an answer."""

    token_id: int
    start: int
    """Where its text begins, in characters of the answer."""
    logprob: float | None = None
    top: tuple[Alternative, ...] = ()


class Piece(Struct, frozen=True):
    """A part of an answer that may be sent."""

    text: str
    """Text of the answer, without reasoning and calls."""
    tokens: tuple[AnswerToken, ...] = ()
    """The tokens that the piece covers."""
    token_ids: tuple[int, ...] = ()
    """All tokens since the last piece, including those without text, such as the stop token."""
    finish: str | None = None
    """``stop`` or ``length`` on the last piece."""
    stop: str | None = None
    """The stop string that ended the answer."""
    read: tuple[AnswerPart, ...] | None = None
    """Text, reasoning and calls; None if the answer is not parsed."""
    prompt: tuple[Logprobs, ...] | None = None
    """On the first piece, if the prompt was scored: logprobs of its tokens except the first."""

    @property
    def parts(self) -> tuple[AnswerPart, ...]:
        """The content of the piece, in order."""
        if self.read is not None:
            return self.read
        return (Text(self.text),) if self.text else ()


class AnswerText:
    """Detokenizes one answer. Holds back incomplete characters and what may become a stop string.

    A token is sent with its text. ``reader`` separates reasoning and calls from text. Stop strings are
    matched only in the text. ``shows_stop``: the text includes the stop string or stop token that ended it.
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
        """Read the next token. None: nothing can be sent yet. The piece with ``finish`` must be the last."""
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
        """Return the parts that may be sent, and the stop string that ended the text, if any."""
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
        """Return the text held back for a stop string that cannot be completed any more."""
        held = self._matcher.finish()
        self._unsent_len -= len(held)
        return [Text(held)] if held else []

    def _piece(self, read: list[AnswerPart], finish: str | None = None, stop: str | None = None) -> Piece:
        held = self._reader.held if self._reader is not None else 0
        sent_len = self._decoded_len - held - self._unsent_len
        # The last token of an answer may have no text. It still counts unless a stop string ended the answer.
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
