"""Track the position of one sequence in its grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llguidance import LLMatcher


_DEAD_END = "NoExtensionBias"


class Matcher:
    """Follows the tokens of an answer. Its state depends only on the grammar and these tokens."""

    def __init__(self, compiled: LLMatcher) -> None:
        self.compiled = compiled

    @property
    def error(self) -> str | None:
        """Why it cannot continue: a limit was reached, or no text can follow; None: it can."""
        if not self.compiled.is_error():
            return None
        reason = self.compiled.get_error().partition("\n")[0]
        return "no text can follow from here" if reason == _DEAD_END else reason

    def fork(self) -> Matcher:
        """Return an independent matcher at the same position."""
        return Matcher(self.compiled.deep_copy())

    def accept(self, tokens: Sequence[int]) -> None:
        """Advance over tokens of the answer. A token that the grammar does not allow sets `error`."""
        if tokens:
            self.compiled.consume_tokens(list(tokens))
