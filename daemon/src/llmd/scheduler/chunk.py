"""The parts of sequences that one step computes."""

from __future__ import annotations

import msgspec

from llmd.scheduler.sequence import Sequence


class Chunk(msgspec.Struct, frozen=True):
    """Positions ``[start, start + count)`` of a sequence in one step."""

    sequence: Sequence
    start: int
    count: int
    ends: bool
    """A token is drawn from the last row, for the sequence and each of its siblings."""
    siblings: tuple[Sequence, ...] = ()
    """Sequences that continue as forks of this one."""
    opening: int = 0
    """`Pager.opening` of the sequence when the chunk was planned."""
    drafts: tuple[int, ...] = ()
    """Proposed tokens at the last positions. Each of these rows, and the row before them, draws a token: the
    token of a row counts if all proposals up to that row were drawn by the rows before."""
    scored: bool = False
    """Each row returns the logprob of the next prompt token; such a chunk never ends its sequence."""

    @property
    def drawing(self) -> tuple[Sequence, ...]:
        """The sequences that get a token, one for each row that draws."""
        if self.drafts:
            return (self.sequence,) * (1 + len(self.drafts))
        return (self.sequence, *self.siblings) if self.ends else ()

    @property
    def tokens(self) -> list[int]:
        """The tokens at its positions; the last one is missing while it is pending."""
        known = self.sequence.tokens[self.start : self.start + self.count]
        return [*known, *self.drafts] if self.drafts else known


class StepPlan(msgspec.Struct, frozen=True):
    """The chunks of one step."""

    chunks: list[Chunk]
    started: list[tuple[Sequence, int]]
    """Sequences that begin to run in this step, each with its number of cached tokens."""
