"""Proposals of the next tokens of a sequence, which one step verifies together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Proposer(Protocol):
    """Guesses tokens. A wrong guess costs time, but never changes an answer."""

    def propose(self, tokens: Sequence[int], count: int) -> Sequence[int]:
        """Return at most ``count`` tokens that may follow ``tokens``; none: do not speculate in this step."""
        ...
