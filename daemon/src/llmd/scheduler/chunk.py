"""The part of a sequence that one step computes."""

from __future__ import annotations

import msgspec

from llmd.scheduler.sequence import Sequence


class Chunk(msgspec.Struct, frozen=True):
    """Tokens ``[start, start + count)`` of a sequence in one step."""

    sequence: Sequence
    start: int
    count: int
    ends: bool
    """A token is drawn from the last row, for the sequence and each of its siblings."""
    siblings: tuple[Sequence, ...] = ()
    """Sequences that continue as forks of this one."""
    opening: int = 0
    """`Pager.opening` of the sequence when the chunk was planned."""
    scored: bool = False
    """Each row returns the logprob of the next prompt token; such a chunk never ends its sequence."""

    @property
    def drawing(self) -> tuple[Sequence, ...]:
        """The sequences that get a token."""
        return (self.sequence, *self.siblings) if self.ends else ()
