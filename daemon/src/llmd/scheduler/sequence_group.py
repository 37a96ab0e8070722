"""Sequences of one request that run, wait and are preempted together: the beams of a search."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from llmd.scheduler.sequence import Sequence


class SequenceGroup(msgspec.Struct, eq=False):
    """Sequences of equal length that differ only in their output.

    The first member is the leader: it is the one in the waiting queue, and it computes the shared tokens.
    """

    request_id: int
    width: int
    """Most members; this many slots are reserved."""
    members: list[Sequence]
    shared_len: int = 0
    """Tokens that the leader computes before the others fork from it; 0: they have forked."""

    @property
    def leader(self) -> Sequence:
        return self.members[0]

    def restart(self) -> None:
        """Mark the group as having lost its blocks.

        Results of its rows that are still in flight are dropped: the restarted sequences are new objects with
        the same ids.
        """
        begun, self.members = self.members, [msgspec.structs.replace(one) for one in self.members]
        for one in begun:
            one.ended = True
        # The last row is not shared: each member draws from its own.
        rest = zip(*(one.tokens[:-1] for one in self.members), strict=True)
        common = sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, rest))
        self.shared_len = common if len(self.members) > 1 else 0
