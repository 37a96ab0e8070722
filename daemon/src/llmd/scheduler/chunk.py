"""What one sequence contributes to a step."""

from __future__ import annotations

import msgspec

from llmd.scheduler.sequence import Sequence


class Chunk(msgspec.Struct, frozen=True):
    """Tokens ``[start, start + count)`` of a sequence in one step; ``ends`` where a token is drawn after it."""

    sequence: Sequence
    start: int
    count: int

    @property
    def ends(self) -> bool:
        return self.start + self.count == len(self.sequence.tokens)
