"""What one sequence contributes to a step."""

from __future__ import annotations

import msgspec

from llmd.scheduler.sequence import Sequence


class Chunk(msgspec.Struct, frozen=True):
    """Tokens ``[start, start + count)`` of a sequence in one step.

    ``ends``: a token is drawn after it, for the sequence and for each of its ``siblings``, which go on as its forks.
    ``scored``: every row tells how likely the next token of the prompt was; such a chunk never ends its sequence.
    """

    sequence: Sequence
    start: int
    count: int
    ends: bool
    siblings: tuple[Sequence, ...] = ()
    scored: bool = False

    @property
    def drawing(self) -> tuple[Sequence, ...]:
        """The sequences that get a token."""
        return (self.sequence, *self.siblings) if self.ends else ()
