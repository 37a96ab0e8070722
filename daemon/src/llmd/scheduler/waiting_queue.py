"""The queue of waiting sequences, with lookup by rank, by id and by the prefill that they need."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterator
from operator import attrgetter

from llmd.scheduler.sequence import Sequence

BY_RANK = attrgetter("rank")
_SCORED = "scored"


class WaitingQueue:
    """Waiting sequences in groups: siblings together, scored prompts together, all others alone.

    If one sequence of a group must wait, all of it must. A search for the first sequence that may start
    therefore skips a few groups instead of thousands of sequences.
    """

    def __init__(self) -> None:
        self._by_id: dict[int, Sequence] = {}
        self._groups: dict[Hashable, list[Sequence]] = {}
        self._heads: list[Sequence] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Sequence]:
        """Iterate in order of rank."""
        return iter(sorted(self._by_id.values(), key=BY_RANK))

    @property
    def heads(self) -> list[Sequence]:
        """The first sequence of each group, by rank."""
        return self._heads

    def find(self, request_id: int) -> Sequence | None:
        return self._by_id.get(request_id)

    def siblings(self, sequence: Sequence) -> list[Sequence]:
        """Return the waiting sequences that need the same prefill, by rank."""
        return self._groups.get(sequence.sibling_key, []) if sequence.sibling_key is not None else []

    def add(self, sequence: Sequence) -> None:
        self._by_id[sequence.request_id] = sequence
        group = self._groups.setdefault(_group(sequence), [])
        if group:
            self._heads.remove(group[0])
        insort(group, sequence, key=BY_RANK)
        insort(self._heads, group[0], key=BY_RANK)

    def remove(self, sequence: Sequence) -> None:
        """Remove a waiting sequence."""
        del self._by_id[sequence.request_id]
        key = _group(sequence)
        group = self._groups[key]
        self._heads.remove(group[0])
        group.remove(sequence)
        if group:
            insort(self._heads, group[0], key=BY_RANK)
        else:
            del self._groups[key]


def _group(sequence: Sequence) -> Hashable:
    """Return the group key, which must not change while a sequence waits.

    A sequence with a pending token is therefore already alone, as it will be once it has the token.
    """
    if sequence.pending:
        return sequence.request_id
    if sequence.sibling_key is not None:
        return sequence.sibling_key
    return _SCORED if sequence.unscored_from else sequence.request_id
