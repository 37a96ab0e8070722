"""First in, first out: up to ``slots`` sequences run, the rest wait in the order they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

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


class FifoScheduler:
    """Keeps the running and the waiting sequences."""

    def __init__(self, *, slots: int, chunk_len: int) -> None:
        self._slots = slots
        self._chunk_len = chunk_len
        self.running: dict[int, Sequence] = {}
        self.waiting: deque[Sequence] = deque()

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def admit(self, try_admit: Callable[[Sequence], bool]) -> list[Sequence]:
        """Start waiting sequences while slots and blocks last; the first that does not fit holds the others back."""
        started = []
        while self.waiting and len(self.running) < self._slots and try_admit(self.waiting[0]):
            sequence = self.waiting.popleft()
            self.running[sequence.request_id] = sequence
            started.append(sequence)
        return started

    def remove(self, request_id: int) -> Sequence | None:
        """Forget a sequence; return it where it was running (and so owns blocks)."""
        running = self.running.pop(request_id, None)
        if running is None:
            self.waiting = deque(s for s in self.waiting if s.request_id != request_id)
        return running

    def plan(self, length_of: Callable[[int], int]) -> list[Chunk]:
        """Rows of the next step: every running decode, and a chunk of the first sequence in prefill.

        ``length_of(request_id)`` is how many of its tokens already have keys and values.
        """
        return plan_step(self.running.values(), length_of, self._chunk_len)


def plan_step(running: Iterable[Sequence], length_of: Callable[[int], int], chunk_len: int) -> list[Chunk]:
    """Return one row for each sequence that only lacks its last token, and at most one prefill chunk."""
    chunks: list[Chunk] = []
    prefill_taken = False
    for sequence in running:
        start = length_of(sequence.request_id)
        missing = len(sequence.tokens) - start
        if missing > 1 and prefill_taken:
            continue
        prefill_taken = prefill_taken or missing > 1
        chunks.append(Chunk(sequence, start, min(missing, chunk_len)))
    return chunks
