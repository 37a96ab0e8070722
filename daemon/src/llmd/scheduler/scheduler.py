"""Continuous batching: choose the rows of the next step, and the sequences to preempt when blocks run out."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Container
from functools import partial
from operator import attrgetter

from llmd.api.reports import WaitReason
from llmd.pager.block_counts import blocks_for
from llmd.pager.pager import Pager
from llmd.scheduler.chunk import Chunk, StepPlan
from llmd.scheduler.proposer import Proposer
from llmd.scheduler.sequence import Sequence
from llmd.scheduler.sequence_group import SequenceGroup
from llmd.scheduler.waiting_queue import BY_RANK, WaitingQueue

_IS_SCORED = attrgetter("scored")


class Scheduler:
    """Holds the running and waiting sequences in order of rank: lowest priority number, then arrival.

    Each step has one row for each running sequence in decode, and prefill chunks of up to ``chunk_len``
    tokens in total, so that a long prompt delays the others by only one chunk per step. When blocks run out,
    the running sequence of the last rank is preempted: its blocks are freed, and it waits with its tokens.
    When it runs again, their keys and values are recomputed or found in the prefix cache.

    A step may be planned while others are in flight. A sequence whose token is pending in the newest of them
    counts that token, if the new step can take it from there. If the pending token ends the sequence, the row
    planned after it is wasted. With several ``micro_batches``, the running sequences are divided evenly among
    that many steps instead: a step has no row for a sequence with a pending token.

    Siblings are waiting sequences with the same prompt as a running one (``n`` answers to a prompt). They
    wait for its prefill, draw their first tokens from its last row, and continue as its forks.

    A sequence group (the beams of a search) starts when there are slots for its full width, and is preempted
    as a whole; afterwards its shared tokens are computed once. The next tokens of all members are chosen
    together, once the rows of all have arrived. A step that is planned before that has no rows of the group.

    A sequence in decode may have rows for proposed tokens after its own: at most ``max_drafts`` of
    ``proposer``. They are planned if blocks are free for them; nothing is preempted for a proposal. There are
    none if the model has states (`Pager.can_retract`).

    Rows of a scored prompt return logits. A step has room for ``scored_rows`` of them; their chunks are last
    in it.

    Sources: Yu et al. 2022, "Orca"; Agrawal et al. 2024, "Sarathi-Serve" (chunked prefills); preemption by
    recomputation as in Kwon et al. 2023, "PagedAttention".
    """

    def __init__(
        self,
        pager: Pager,
        *,
        slots: int,
        chunk_len: int,
        scored_rows: int = 0,
        micro_batches: int = 1,
        proposer: Proposer | None = None,
        max_drafts: int = 0,
    ) -> None:
        self._pager = pager
        self._proposer = proposer
        self._max_drafts = max_drafts if proposer and pager.can_retract else 0
        self._micro_batches = micro_batches
        self._known: Container[int] = ()  # sequences whose pending token the step being planned can take
        self._slots = slots
        self._chunk_len = chunk_len
        self._scored_rows = scored_rows
        self.running: list[Sequence] = []
        self.waiting = WaitingQueue()
        self.joining: list[Sequence] = []  # siblings whose first token is pending
        self._scorable = 0  # scored rows that still fit the step being planned
        self.preemptions = 0
        self.blocked_by: WaitReason | None = None  # why the last plan did not start all waiting sequences

    @property
    def num_waiting(self) -> int:
        """Number of sequences without blocks."""
        return len(self.waiting) + len(self.joining)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence."""
        self.waiting.add(sequence)

    def remove(self, request_id: int) -> None:
        """Remove a sequence and free its blocks; unknown ids are ignored."""
        if sequence := self.waiting.find(request_id):
            self.waiting.remove(sequence)
        elif sequence := _found(self.joining, request_id):
            self.joining.remove(sequence)
        elif sequence := _found(self.running, request_id):
            self.running.remove(sequence)
            self._pager.free(request_id)
        else:
            return
        sequence.ended = True

    def plan(self, known: Container[int] = ()) -> StepPlan:
        """Plan the next step; the plan is empty if nothing can run until a step in flight is done.

        Reserves the blocks that the step writes to. Lengths do not change until it is done. ``known`` are the
        ids of sequences that draw in the newest step in flight, from which this step can take their tokens.
        """
        # Proposals follow the last token: a sequence with a pending token waits for it.
        self._known = known if self._micro_batches == 1 and not self._max_drafts else ()
        before, self._scorable = self.preemptions, self._scored_rows
        self._fork_from_leaders()
        chunks, left = self._plan_running()
        self.blocked_by = "kv_blocks" if self.preemptions > before else None
        started = [] if self.blocked_by else self._start(left)
        begun = [(sequence, chunk.start) for sequence, chunk in started]
        chunks += [chunk for _, chunk in started]
        begun += [(sibling, chunk.sequence.prompt_len) for chunk in chunks for sibling in chunk.siblings]
        chunks.sort(key=_IS_SCORED)
        return StepPlan(chunks, begun)

    def complete(self, chunk: Chunk) -> None:
        """Record that the step of a chunk is done, and its tokens appended.

        Its positions become valid, except those of proposals that were not drawn, unless its sequence was
        preempted since. Its siblings become forks of the sequence, or are queued if it is gone.
        """
        end = chunk.start + chunk.count
        if chunk.drafts:
            end = min(end, len(chunk.sequence.tokens) - 1)
        is_current = self._pager.advance(chunk.sequence.request_id, end - chunk.start, chunk.opening)
        if chunk.drafts and is_current:
            self._pager.retract(chunk.sequence.request_id)
        for sibling in chunk.siblings:
            if sibling.ended:
                continue
            self.joining.remove(sibling)
            if self._fork(chunk.sequence, sibling, chunk.start + chunk.count):
                insort(self.running, sibling, key=BY_RANK)
            else:
                self.add(sibling)

    def renew(
        self, group: SequenceGroup, members: list[Sequence], forks: list[tuple[Sequence, Sequence]]
    ) -> None:
        """Replace the members of a group by some of them and by forks of these, given as (parent, child).

        No row of the group may be in flight.
        """
        for one in group.members:
            if one not in members:
                self.remove(one.request_id)
        for parent, child in forks:
            self._fork_member(parent, child)
        group.members = members

    def rewind(self) -> None:
        """Roll back all steps in flight after a failure: their tokens are not drawn."""
        self._pager.rewind()
        for sequence in self.running:
            sequence.pending = 0
        back = [one for one in self.waiting if one.pending]
        for sequence in back:
            self.waiting.remove(sequence)
        for sequence in (*back, *self.joining):
            sequence.pending = 0
            self.add(sequence)
        self.joining.clear()

    def move(self, pager: Pager, micro_batches: int = 1) -> None:
        """Go on with another, empty pager: running sequences wait again with their tokens.

        No step may be in flight.
        """
        self._pager, self._micro_batches = pager, micro_batches
        running, self.running = self.running, []
        for one in running:
            if one.group is None or one is one.group.leader:
                self._wait_again(one)

    def _fork(self, parent: Sequence, child: Sequence, length: int) -> bool:
        alive = not parent.ended and self._pager.owns(parent.request_id)
        if not alive or self._pager.length(parent.request_id) != length:
            return False
        return self._fork_blocks(parent, child)

    def _fork_blocks(self, parent: Sequence, child: Sequence) -> bool:
        forked = self._pager.fork(parent.request_id, child.request_id, child.tokens)
        if forked:
            child.opening = self._pager.opening(child.request_id)
        return forked

    def _fork_from_leaders(self) -> None:
        """Fork the members of restarted groups from their leaders that have computed the shared tokens."""
        for leader in [one for one in self.running if one.group and one.group.shared_len]:
            group = leader.group
            assert group is not None
            if self._pager.length(leader.request_id) == group.shared_len:
                group.shared_len = 0
                for member in group.members[1:]:
                    self._fork_member(leader, member)

    def _fork_member(self, parent: Sequence, child: Sequence) -> None:
        forked = self._fork_blocks(parent, child)
        assert forked, "a group has a slot for each of its members"
        insort(self.running, child, key=BY_RANK)

    def _plan_running(self) -> tuple[list[Chunk], int]:
        """Return the chunks of the running sequences, and the prefill tokens that still fit the step."""
        chunks: list[Chunk] = []
        left, index = self._chunk_len, 0
        share = -(-len(self.running) // self._micro_batches)
        while index < len(self.running) and share > 0:
            sequence = self.running[index]
            if sequence.group is None:
                start, count, used = self._next(sequence, left)
                prepare = partial(self._pager.prepare, sequence.request_id, count)
                if self._max_drafts and (drafts := self._drafts(sequence, start, count)):
                    chunks.append(self._speculate(sequence, start, drafts))
                    share -= 1
                elif count and self._make_room(sequence, prepare):
                    chunks.append(self._chunk(sequence, start, count))
                    share -= chunks[-1].ends
                    left -= used
                index += 1
            else:
                members = self._together(sequence)
                planned, left = self._plan_group(members, left)
                chunks += planned
                share -= sum(chunk.ends for chunk in planned)
                index += len(members)
        return chunks, left

    def _plan_group(self, members: list[Sequence], left: int) -> tuple[list[Chunk], int]:
        """Return the chunks of a group's members: all of them get blocks, or the group is preempted."""
        spans = []
        for member in members:
            start, count, used = self._next(member, left)
            left -= used
            if count:
                spans.append((member, start, count))
        wanted = {member.request_id: count for member, _, count in spans}
        if not self._make_room(members[0], partial(self._pager.prepare_all, wanted)):
            return [], left
        return [self._chunk(*span) for span in spans], left

    def _together(self, sequence: Sequence) -> list[Sequence]:
        """Return the running sequences that are preempted together with this one; they are adjacent."""
        if sequence.group is None:
            return [sequence]
        return [one for one in self.running if one.group is sequence.group]

    def _next(self, sequence: Sequence, left: int) -> tuple[int, int, int]:
        """Return start and count of a sequence's next rows, and the tokens of ``left`` that they use."""
        start = self._pager.planned(sequence.request_id)
        missing = sequence.expected_len - start
        if sequence.pending and (
            sequence.expected_len >= sequence.total_len or sequence.request_id not in self._known
        ):
            missing = max(0, len(sequence.tokens) - start)  # the pending token is its last, or out of reach
        if missing == 1:
            return start, 1, 0
        count = self._count(sequence, start, min(missing, left))
        return start, count, count

    def _count(self, sequence: Sequence, start: int, count: int) -> int:
        """Limit the rows of a chunk: scored rows and rows shared by a group are not mixed with other rows.
        Of a model with states, it ends where it leaves a snapshot, if it can.
        """
        count = self._pager.fitting(start, count)
        unscored = sequence.unscored_from - start
        if unscored > 0:
            return min(count, unscored, self._scorable)
        shared = sequence.group.shared_len - start if sequence.group else 0
        return min(count, shared) if shared > 0 else count

    def _chunk(self, sequence: Sequence, start: int, count: int) -> Chunk:
        if start < sequence.unscored_from:
            self._scorable -= count
            return Chunk(sequence, start, count, ends=False, opening=sequence.opening, scored=True)
        ends = start + count == sequence.expected_len
        siblings = self._siblings(sequence) if ends else ()
        for one in (sequence, *siblings) if ends and sequence.group is None else ():
            one.pending += 1
        return Chunk(sequence, start, count, ends, siblings, sequence.opening)

    def _drafts(self, sequence: Sequence, start: int, count: int) -> tuple[int, ...]:
        """Return proposals for a sequence whose next row draws, as many as have blocks; they are prepared."""
        decodes = count == 1 and start + 1 == len(sequence.tokens) and not sequence.pending
        if self._proposer is None or not decodes or not sequence.speculates:
            return ()
        most = min(self._max_drafts, sequence.total_len - len(sequence.tokens) - 1)
        drafts = tuple(self._proposer.propose(sequence.tokens, most))[:most] if most > 0 else ()
        return drafts if drafts and self._pager.prepare(sequence.request_id, 1 + len(drafts)) else ()

    def _speculate(self, sequence: Sequence, start: int, drafts: tuple[int, ...]) -> Chunk:
        sequence.pending += 1
        return Chunk(sequence, start, 1 + len(drafts), ends=True, opening=sequence.opening, drafts=drafts)

    def _siblings(self, sequence: Sequence) -> tuple[Sequence, ...]:
        """Dequeue sequences that need only the prefill that this chunk completes, as many as have slots."""
        if sequence.sibling_key is None or sequence.pending:
            return ()
        free = self._slots - self.slots_used()
        free -= sequence not in self.running
        siblings = tuple(self.waiting.siblings(sequence)[: max(free, 0)])
        for sibling in siblings:
            self.waiting.remove(sibling)
            self.joining.append(sibling)
        return siblings

    def _make_room(self, sequence: Sequence, prepare: Callable[[], bool]) -> bool:
        """Reserve blocks with ``prepare``, and preempt sequences of later ranks if necessary.

        Returns:
            False if the sequence itself, or its group, was preempted.
        """
        while not prepare():
            last = self._together(self.running[-1])
            del self.running[-len(last) :]
            for one in last:
                self._pager.free(one.request_id)
            self.preemptions += 1
            self._wait_again(last[0])
            if sequence in last:
                return False
        return True

    def _wait_again(self, sequence: Sequence) -> None:
        if sequence.group is not None:
            sequence.group.restart()
            sequence = sequence.group.leader
        self.add(sequence)

    def _start(self, left: int) -> list[tuple[Sequence, Chunk]]:
        """Start waiting sequences while slots, blocks and prefill tokens last.

        The first sequence that does not fit blocks all later ones, so that it cannot starve.
        """
        started = []
        while (sequence := self._first_to_start()) is not None:
            width = sequence.group.width if sequence.group else 1
            if self.slots_used() + width > self._slots:
                self.blocked_by = "slots"
                break
            if not left:
                self.blocked_by = "earlier"
                break
            cached = self._open(sequence)
            if cached is None:
                self.blocked_by = "kv_blocks"
                break
            sequence.opening = self._pager.opening(sequence.request_id)
            self.waiting.remove(sequence)
            count = self._count(sequence, cached, min(len(sequence.tokens) - cached, left))
            took = self._pager.prepare(sequence.request_id, count)
            assert took, "opening a sequence checks that there are blocks for its tokens"
            left -= count
            chunk = self._chunk(sequence, cached, count)
            insort(self.running, sequence, key=BY_RANK)
            started.append((sequence, chunk))
        return started

    def slots_used(self) -> int:
        """Count the slots of running and joining sequences; a group uses its full width."""
        alone = sum(one.group is None for one in self.running)
        groups = sum(one.group.width for one in self.running if one.group and one is one.group.leader)
        return alone + groups + len(self.joining)

    def _open(self, sequence: Sequence) -> int | None:
        """Open a waiting sequence; return its number of cached tokens, or None if too few blocks are free."""
        # Keep one block for each running sequence, so that the new one is not preempted in the next step.
        spare, group = len(self.running), sequence.group
        if group is None:
            return self._pager.open(sequence.request_id, sequence.tokens, sequence.cache_keys, spare=spare)
        if spare:
            apart = len(sequence.tokens) - group.shared_len if group.shared_len else 0
            spare += group.width * (1 + blocks_for(apart))
        # Cached tokens must end before the fork point: the leader has to stop exactly there.
        most_cached = group.shared_len - 1 if group.shared_len else None
        return self._pager.open(
            sequence.request_id, sequence.tokens, sequence.cache_keys, spare=spare, most_cached=most_cached
        )

    def _first_to_start(self) -> Sequence | None:
        """Return the first waiting sequence that may start.

        Skip siblings of a sequence in prefill, and scored prompts if the step has no room for scored rows.
        """
        in_prefill = {one.sibling_key for one in self.running} - {None}
        return next(
            (
                one
                for one in self.waiting.heads
                if one.sibling_key not in in_prefill and (self._scorable or not one.unscored_from)
            ),
            None,
        )


def _found(sequences: list[Sequence], request_id: int) -> Sequence | None:
    return next((one for one in sequences if one.request_id == request_id), None)
