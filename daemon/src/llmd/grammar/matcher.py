"""The place of one sequence in its grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llguidance import LLMatcher


_DEAD_END = "NoExtensionBias"


class Matcher:
    """Follows the tokens of an answer. Its state is a function of the grammar and these tokens alone."""

    def __init__(self, compiled: LLMatcher) -> None:
        self.compiled = compiled

    @property
    def error(self) -> str | None:
        """Why it can follow no further: a limit was reached, or no text goes on from here."""
        if not self.compiled.is_error():
            return None
        reason = self.compiled.get_error().partition("\n")[0]
        return "no text continues it from here" if reason == _DEAD_END else reason

    def fork(self) -> Matcher:
        """A matcher at the same place, which goes its own way."""
        return Matcher(self.compiled.deep_copy())

    def accept(self, tokens: Sequence[int]) -> None:
        """Take tokens that the answer has. One that the grammar does not allow is an `error`."""
        if tokens:
            self.compiled.consume_tokens(list(tokens))
