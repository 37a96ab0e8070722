"""Families of sequences whose next tokens are chosen as a search would choose them, but at random."""

from __future__ import annotations

import itertools
import random

from llmd.scheduler.family import Family
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence


def lead(sequence: Sequence, width: int) -> Sequence:
    """The sequence, as the first of a family."""
    sequence.twin_key = None
    sequence.family = Family(sequence.request_id, width, [sequence])
    return sequence


class Searches:
    """Chooses once all members of a family have drawn: some go on, some are forked, some end."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.ended: dict[int, int] = {}
        self._scheduler = scheduler
        self._ids = itertools.count(-2, -1)
        self._drawn: set[Sequence] = set()

    def draw(self, sequence: Sequence) -> None:
        """Take that a row of a member has arrived."""
        self._drawn.add(sequence)

    def cancel(self, request_id: int) -> None:
        """Let the members of a family go; an unknown one is ignored."""
        for one in [*self._scheduler.running, *self._scheduler.waiting]:
            if one.owner_id == request_id:
                self._scheduler.remove(one.request_id)

    def advance(self) -> None:
        """Act on a step that is done."""
        families = {id(one.family): one.family for one in self._drawn if one.family and not one.ended}
        for family in families.values():
            if not self._drawn.issuperset(family.members):
                continue
            self._drawn.difference_update(family.members)
            tokens = family.leader.tokens
            if len(tokens) + 1 == family.leader.total_len:
                self.cancel(family.request_id)
                self.ended[family.request_id] = len(tokens) + 1
            else:
                self._choose(family, random.Random(f"{family.request_id} {len(tokens)}"))

    def _choose(self, family: Family, chance: random.Random) -> None:
        members: list[Sequence] = []
        forks: list[tuple[Sequence, Sequence]] = []
        for _ in range(chance.randint(1, family.width)):
            parent = chance.choice(family.members)
            if parent in members:
                forks.append((parent, parent.fork(next(self._ids))))
            members.append(forks[-1][1] if parent in members else parent)
        self._scheduler.renew(family, members, forks)
        for place, member in enumerate(members):
            member.tokens.append(place)
