"""What one sequence contributes to a step."""

from __future__ import annotations

import msgspec

from llmd.scheduler.sequence import Sequence


class Chunk(msgspec.Struct, frozen=True):
    """Tokens ``[start, start + count)`` of a sequence in one step.

    ``ends``: a token is drawn after it, for the sequence and for each of its ``twins``, which go on as its forks.
    """

    sequence: Sequence
    start: int
    count: int
    ends: bool
    twins: tuple[Sequence, ...] = ()

    @property
    def drawing(self) -> tuple[Sequence, ...]:
        """The sequences that get a token."""
        return (self.sequence, *self.twins) if self.ends else ()
