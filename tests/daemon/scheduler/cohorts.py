"""Cohorts of sequences whose next tokens are chosen as a search would choose them, but at random."""

from __future__ import annotations

import itertools
import random

from llmd.scheduler.cohort import Cohort
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence


def lead(sequence: Sequence, width: int) -> Sequence:
    """The sequence, as the first of a cohort."""
    sequence.twin_key = None
    sequence.cohort = Cohort(sequence.request_id, width, [sequence])
    return sequence


class Searches:
    """Chooses once all members of a cohort have drawn: some go on, some are forked, some end."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.ended: dict[int, int] = {}
        self._scheduler = scheduler
        self._ids = itertools.count(-2, -1)
        self._drawn: set[Sequence] = set()

    def draw(self, sequence: Sequence) -> None:
        """Take that a row of a member has arrived."""
        self._drawn.add(sequence)

    def cancel(self, request_id: int) -> None:
        """Let the members of a cohort go; an unknown one is ignored."""
        for one in [*self._scheduler.running, *self._scheduler.waiting]:
            if one.owner_id == request_id:
                self._scheduler.remove(one.request_id)

    def advance(self) -> None:
        """Act on a step that is done."""
        cohorts = {id(one.cohort): one.cohort for one in self._drawn if one.cohort and not one.ended}
        for cohort in cohorts.values():
            if not self._drawn.issuperset(cohort.members):
                continue
            self._drawn.difference_update(cohort.members)
            tokens = cohort.leader.tokens
            if len(tokens) + 1 == cohort.leader.total_len:
                self.cancel(cohort.request_id)
                self.ended[cohort.request_id] = len(tokens) + 1
            else:
                self._choose(cohort, random.Random(f"{cohort.request_id} {len(tokens)}"))

    def _choose(self, cohort: Cohort, chance: random.Random) -> None:
        members: list[Sequence] = []
        forks: list[tuple[Sequence, Sequence]] = []
        for _ in range(chance.randint(1, cohort.width)):
            parent = chance.choice(cohort.members)
            if parent in members:
                forks.append((parent, parent.fork(next(self._ids))))
            members.append(forks[-1][1] if parent in members else parent)
        self._scheduler.renew(cohort, members, forks)
        for place, member in enumerate(members):
            member.tokens.append(place)
