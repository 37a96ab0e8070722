"""How the answers of a family of models are read: what marks its reasoning, and how it writes calls of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from llmd.api.parts import AnswerPart


class Tool(msgspec.Struct, frozen=True):
    """A tool that may be called. ``parameters`` is the JSON schema of its arguments, which are an object."""

    name: str
    parameters: Mapping[str, Any]


class ReasoningMarks(msgspec.Struct, frozen=True):
    """The texts between which a model reasons before it answers. Whitespace next to them belongs to them."""

    begin: str
    end: str


class CallReader(Protocol):
    """Reads the text of one answer as it comes; used by one thread at a time.

    However a text is cut, the parts are the same but for how texts and arguments are cut. Nothing is lost: what is
    no call comes out as `Text`, and a call that turns out malformed does, too, as far as it has not been told yet.
    """

    @property
    def held(self) -> int:
        """How many of the last characters that were fed are still undecided: no part tells of them."""
        ...

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """Take the next piece of text."""
        ...

    def finish(self) -> Sequence[AnswerPart]:
        """The parts of what is still held, now that the answer has ended. Nothing may be fed afterwards."""
        ...


class SchemaTerm(msgspec.Struct, frozen=True):
    """JSON that follows a schema."""

    schema: Mapping[str, Any]


class TextTerm(msgspec.Struct, frozen=True):
    """Any text up to the first ``end``, which is part of the term; ``pattern`` is a regular expression of the whole text."""

    end: str
    pattern: str | None = None


class ChoiceTerm(msgspec.Struct, frozen=True):
    """One of several sequences of terms; with an empty one among them, the others are optional."""

    options: tuple[tuple[Term, ...], ...]


class ListTerm(msgspec.Struct, frozen=True):
    """Any number of items, none included, with ``separator`` between them."""

    item: tuple[Term, ...]
    separator: str


Term = str | SchemaTerm | TextTerm | ChoiceTerm | ListTerm
"""What comes next in a call: a text as it stands, or a form that leaves something open."""


class CallGrammar(msgspec.Struct, frozen=True):
    """Calls as a family writes them: ``trigger``, ``opening``, calls with ``separator`` between them, ``closing``.

    ``calls`` has one sequence of terms for each tool that may be called. An answer that has written ``trigger`` is bound
    to the grammar from there on. With ``at_start``, where calls have no mark of their own, that holds at the beginning
    of an answer alone, for one that begins with the first text of one of ``calls``.
    """

    calls: Sequence[Sequence[Term]]
    trigger: str
    opening: str = ""
    separator: str = ""
    closing: str = ""
    at_start: bool = False


class CallFormat(msgspec.Struct, frozen=True):
    """How a family writes calls.

    ``open(tools)`` makes the reader of one answer; ``grammar(tools)`` binds one. ``marks`` are the texts that some
    tokenizers have as special tokens: the reader sees them although they are not shown to users.
    """

    open: Callable[[Sequence[Tool]], CallReader]
    grammar: Callable[[Sequence[Tool]], CallGrammar]
    marks: tuple[str, ...] = ()
