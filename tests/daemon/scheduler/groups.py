"""Sequence groups whose next tokens are chosen as a beam search would choose them, but at random."""

from __future__ import annotations

import itertools
import random

from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence
from llmd.scheduler.sequence_group import SequenceGroup


def lead(sequence: Sequence, width: int) -> Sequence:
    """Make the sequence the first member of a group."""
    sequence.sibling_key = None
    sequence.group = SequenceGroup(sequence.request_id, width, [sequence])
    return sequence


class Searches:
    """Chooses once all members of a group have drawn: some continue, some are forked, some end."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.ended: dict[int, int] = {}
        self._scheduler = scheduler
        self._ids = itertools.count(-2, -1)
        self._drawn: set[Sequence] = set()

    def draw(self, sequence: Sequence) -> None:
        """Record that a row of a member has arrived."""
        self._drawn.add(sequence)

    def cancel(self, request_id: int) -> None:
        """Remove the members of a group; unknown ids are ignored."""
        for one in [*self._scheduler.running, *self._scheduler.waiting]:
            if one.owner_id == request_id:
                self._scheduler.remove(one.request_id)

    def advance(self) -> None:
        """Handle a finished step."""
        groups = {id(one.group): one.group for one in self._drawn if one.group and not one.ended}
        for group in groups.values():
            if not self._drawn.issuperset(group.members):
                continue
            self._drawn.difference_update(group.members)
            tokens = group.leader.tokens
            if len(tokens) + 1 == group.leader.total_len:
                self.cancel(group.request_id)
                self.ended[group.request_id] = len(tokens) + 1
            else:
                self._choose(group, random.Random(f"{group.request_id} {len(tokens)}"))

    def _choose(self, group: SequenceGroup, chance: random.Random) -> None:
        members: list[Sequence] = []
        forks: list[tuple[Sequence, Sequence]] = []
        for _ in range(chance.randint(1, group.width)):
            parent = chance.choice(group.members)
            if parent in members:
                forks.append((parent, parent.fork(next(self._ids))))
            members.append(forks[-1][1] if parent in members else parent)
        self._scheduler.renew(group, members, forks)
        for place, member in enumerate(members):
            member.tokens.append(place)
