"""How to parse the answers of a family of models: its reasoning marks, and its format of tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from llmd.api.parts import AnswerPart


class Tool(msgspec.Struct, frozen=True):
    """A tool that the model may call."""

    name: str
    """What the model calls it by."""
    parameters: Mapping[str, Any]
    """JSON schema of the arguments, which are an object."""


class ReasoningMarks(msgspec.Struct, frozen=True):
    """Texts that enclose the reasoning at the start of an answer. Whitespace next to them is dropped."""

    begin: str
    end: str
    after: str = ""
    """Text between ``end`` and the answer, as grammars must allow it. A `CallReader` drops it."""


class CallReader(Protocol):
    """Streaming parser of one answer; used by one thread at a time.

    How the input is split only affects how texts and arguments are split in the output. No text is lost: text
    that is not a call is returned as `Text`, and so is the unreported rest of a malformed call. Only headers
    of texts are dropped (`CallFormat.text_begin`).
    """

    @property
    def held(self) -> int:
        """Number of characters at the end of the input that no returned part covers yet."""
        ...

    def feed(self, text: str) -> Sequence[AnswerPart]:
        """Parse the next piece of text; return the parts that are now certain."""
        ...

    def finish(self) -> Sequence[AnswerPart]:
        """End the answer and return the parts of the held text. Call nothing afterwards."""
        ...


class SchemaTerm(msgspec.Struct, frozen=True):
    """JSON that matches a schema."""

    schema: Mapping[str, Any]


class TextTerm(msgspec.Struct, frozen=True):
    """Any text up to and including the first ``end``."""

    end: str
    pattern: str | None = None
    """Regular expression that the whole text must match."""


class ChoiceTerm(msgspec.Struct, frozen=True):
    """One of several sequences of terms; an empty sequence makes the others optional."""

    options: tuple[tuple[Term, ...], ...]


class ListTerm(msgspec.Struct, frozen=True):
    """Zero or more items with ``separator`` between them."""

    item: tuple[Term, ...]
    separator: str


Term = str | SchemaTerm | TextTerm | ChoiceTerm | ListTerm
"""An element of a call: a literal text, or a term that leaves something open."""


class CallGrammar(msgspec.Struct, frozen=True):
    """Calls as a family writes them: ``trigger``, ``opening``, calls joined by ``separator``, ``closing``."""

    calls: Sequence[Sequence[Term]]
    """One sequence of terms for each tool that may be called."""
    trigger: str
    """Text that begins the calls: an answer that contains it must follow the grammar from there on."""
    opening: str = ""
    """Text after the trigger."""
    separator: str = ""
    """Text between two calls."""
    closing: str = ""
    """Text after the last call."""
    at_start: bool = False
    """For calls that no mark begins: the grammar applies only to answers that begin with the first text of
    one of ``calls``."""


class CallFormat(msgspec.Struct, frozen=True):
    """How a family writes calls."""

    open: Callable[[Sequence[Tool]], CallReader]
    """Return a reader for one answer, given the tools of the request."""
    grammar: Callable[[Sequence[Tool]], CallGrammar]
    """Return the grammar that an answer must follow if calls are enforced."""
    marks: tuple[str, ...] = ()
    """Texts that some tokenizers have as special tokens: the reader gets them although users do not see
    them."""
    ends: tuple[str, ...] = ()
    """Tokens that end an answer, beside those that the model's files name."""
    text_begin: str = ""
    """Text that the model writes before the text of an answer, and that the reader drops. If it is set, the
    reader also reads answers that cannot call tools."""
