"""Continuous batching: which rows the next step carries, and who gives way when blocks run out."""

from __future__ import annotations

from bisect import insort
from operator import attrgetter

import msgspec

from llmd.pager.pager import Pager
from llmd.scheduler.chunk import Chunk
from llmd.scheduler.sequence import Sequence

_BY_RANK = attrgetter("rank")


class StepPlan(msgspec.Struct, frozen=True):
    """One step: its chunks, and the sequences that begin to run in it, each with how many of its tokens were cached."""

    chunks: list[Chunk]
    started: list[tuple[Sequence, int]]


class Scheduler:
    """Keeps the running and the waiting sequences, both by rank: first those of the lowest priority number, of equal
    ones those that came first.

    Every step carries all running decodes, and prefill chunks up to ``chunk_len`` tokens in all, so that a long
    prompt delays the others by one chunk a step. Where blocks run out, the running sequence of the last rank is
    preempted: its blocks are freed, and it waits with the tokens that it has, whose keys and values are computed
    again, or found in the cache, when it runs on.

    Sources: Yu et al. 2022, "Orca"; Agrawal et al. 2024, "Sarathi-Serve" (chunked prefills); preemption by
    recomputation as in Kwon et al. 2023, "PagedAttention".
    """

    def __init__(self, pager: Pager, *, slots: int, chunk_len: int) -> None:
        self._pager = pager
        self._slots = slots
        self._chunk_len = chunk_len
        self.running: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.preemptions = 0

    def add(self, sequence: Sequence) -> None:
        """Let a sequence wait for its turn."""
        insort(self.waiting, sequence, key=_BY_RANK)

    def remove(self, request_id: int) -> None:
        """Forget a sequence and free its blocks; an unknown one is ignored."""
        for sequences in (self.running, self.waiting):
            for index, sequence in enumerate(sequences):
                if sequence.request_id == request_id:
                    del sequences[index]
                    if sequences is self.running:
                        self._pager.free(request_id)
                    return

    def plan(self) -> StepPlan:
        """The next step. The blocks that it writes to are taken; lengths stay until the step is done."""
        before = self.preemptions
        chunks, left = self._plan_running()
        started = [] if self.preemptions > before else self._start(left)
        begun = [(sequence, chunk.start) for sequence, chunk in started]
        return StepPlan([*chunks, *(chunk for _, chunk in started)], begun)

    def _plan_running(self) -> tuple[list[Chunk], int]:
        """Chunks of the running sequences, and the prefill tokens that the step could still carry."""
        chunks: list[Chunk] = []
        left, index = self._chunk_len, 0
        while index < len(self.running):
            sequence = self.running[index]
            start = self._pager.length(sequence.request_id)
            missing = len(sequence.tokens) - start
            count = 1 if missing == 1 else min(missing, left)
            if count and self._make_room(sequence, count):
                chunks.append(Chunk(sequence, start, count))
                left -= count if missing > 1 else 0
            index += 1
        return chunks, left

    def _make_room(self, sequence: Sequence, count: int) -> bool:
        """Take blocks for a chunk, from sequences of later ranks if need be; False where the sequence itself gave way."""
        while not self._pager.prepare(sequence.request_id, count):
            last = self.running.pop()
            self._pager.free(last.request_id)
            self.preemptions += 1
            self.add(last)
            if last is sequence:
                return False
        return True

    def _start(self, left: int) -> list[tuple[Sequence, Chunk]]:
        """Start waiting sequences while slots, blocks and prefill tokens last; the first that does not fit holds the
        others back, so that nobody is overtaken for ever.
        """
        started = []
        while left and self.waiting and len(self.running) < self._slots:
            sequence = self.waiting[0]
            # A block for each sequence that runs: what is started now should not be preempted in the next step.
            cached = self._pager.open(
                sequence.request_id, sequence.tokens, sequence.cache_keys, spare=len(self.running)
            )
            if cached is None:
                break
            del self.waiting[0]
            insort(self.running, sequence, key=_BY_RANK)
            count = min(len(sequence.tokens) - cached, left)
            took = self._pager.prepare(sequence.request_id, count)
            assert took, "a sequence was opened without the blocks for its tokens"
            left -= count
            started.append((sequence, Chunk(sequence, cached, count)))
        return started
