"""Sequences of one request that run, wait and give way together: the beams of a search."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from llmd.scheduler.sequence import Sequence


class SequenceGroup(msgspec.Struct, eq=False):
    """At most ``width`` sequences of equal length, for which so many slots are kept. The first is the leader: it waits for
    all, and computes what they have in common. They differ in their output alone.
    """

    request_id: int
    width: int
    members: list[Sequence]
    shared_len: int = 0
    """How many tokens the leader computes before the others fork from it; 0 where they have."""

    @property
    def leader(self) -> Sequence:
        return self.members[0]

    def restart(self) -> None:
        """Take that the group has lost its blocks. Rows of it that are on their way are for nobody: the sequences that
        begin anew are other objects, with the same ids.
        """
        begun, self.members = self.members, [msgspec.structs.replace(one) for one in self.members]
        for one in begun:
            one.ended = True
        # The last row is not shared: each member draws from its own.
        rest = zip(*(one.tokens[:-1] for one in self.members), strict=True)
        common = sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, rest))
        self.shared_len = common if len(self.members) > 1 else 0
