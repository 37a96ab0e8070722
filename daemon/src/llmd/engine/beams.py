"""The beam searches of a core: each is a group of sequences, whose next tokens are chosen once all have had their rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import msgspec

from llmd.api.errors import LlmdError, RequestError
from llmd.api.messages import BeamOutput, Submit
from llmd.api.step import StepResult
from llmd.engine.grammars import Grammars
from llmd.sampling.beam_search import NO_PROPOSALS, BeamSearch, Proposals, read_proposals
from llmd.sampling.sampler import Sampler
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence
from llmd.scheduler.sequence_group import SequenceGroup

_DEAD_END = RequestError(
    "the request forbids every token that could continue an answer", hint="forbid fewer tokens"
)
FIRST_ID = -2
"""Sequences of beams have ids of their own, from here downwards: requests have none below 0, and `forward` has -1."""


class _Search(msgspec.Struct):
    """One request. Proposals are those of its members that have had their rows; ``lost`` are members that have none."""

    beams: BeamSearch
    group: SequenceGroup
    proposals: dict[Sequence, Proposals] = {}
    lost: dict[int, LlmdError] = {}

    @property
    def is_ready(self) -> bool:
        return all(member in self.proposals for member in self.group.members)


class Beams:
    """Used by the loop's thread alone."""

    def __init__(self, scheduler: Scheduler, sampler: Sampler, grammars: Grammars) -> None:
        self._scheduler = scheduler
        self._sampler = sampler
        self._grammars = grammars
        self._ids = itertools.count(FIRST_ID, -1)
        self._owners: dict[int, int] = {}  # the request of each sequence
        self._opened: dict[int, Submit] = {}  # by their first sequence
        self._searches: dict[int, _Search] = {}
        self._failed: dict[int, LlmdError] = {}

    def open(self, submit: Submit) -> Submit:
        """Take a request; returns its first beam, as a request of its own that draws nothing."""
        first_id = next(self._ids)
        self._opened[first_id] = submit
        self._owners[first_id] = submit.request_id
        # The best token: no draw, and probabilities at temperature 1.
        sampling = msgspec.structs.replace(
            submit.sampling, temperature=0.0, dynamic_temperature=None, mirostat=None
        )
        return msgspec.structs.replace(submit, request_id=first_id, sampling=sampling)

    def lead(self, sequence: Sequence) -> Sequence:
        """The sequence, with a group where it is the first of a search."""
        if (submit := self._opened.pop(sequence.request_id, None)) is not None:
            assert submit.beams is not None
            sequence.group = SequenceGroup(submit.request_id, submit.beams.width, [sequence])
            sequence.sibling_key = None
            search = BeamSearch(submit.beams, sequence.stop)
            self._searches[submit.request_id] = _Search(search, sequence.group)
        return sequence

    def close(self, request_id: int) -> Iterable[int]:
        """Forget a request; returns the ids of its sequences, nothing for one that is unknown."""
        self._searches.pop(request_id, None)
        members = [one for one, owner in self._owners.items() if owner == request_id]
        for one in members:
            del self._owners[one]
            self._opened.pop(one, None)
        return members

    def owner(self, request_id: int) -> int:
        """The request that a sequence belongs to."""
        return self._owners.get(request_id, request_id)

    def lose(self, request_id: int, error: LlmdError) -> bool:
        """Let a search go on without a sequence; False where the sequence is none of a search that runs."""
        search = self._searches.get(self.owner(request_id)) if request_id in self._owners else None
        if search is not None:
            search.lost[request_id] = error
        return search is not None

    def take(self, sequence: Sequence, row: int, result: StepResult) -> None:
        """Take what a step returned for a sequence of a search."""
        search = self._searches[sequence.owner_id]
        if (error := self._grammars.failure(sequence.request_id)) is not None:
            search.lost[sequence.request_id] = error
        search.proposals[sequence] = (
            NO_PROPOSALS
            if sequence.request_id in search.lost
            else read_proposals(result, row, search.beams.num_proposals, sequence.sampling.logprobs)
        )

    def advance(self) -> tuple[BeamOutput, ...]:
        """Choose the next tokens where the rows of all beams have arrived; returns the searches that ended with this."""
        ended = []
        for request_id, search in list(self._searches.items()):
            if not search.is_ready:
                continue
            search.beams.advance([search.proposals[one] for one in search.group.members])
            search.proposals.clear()
            if search.beams.live:
                self._renew(search)
            elif search.beams.best:
                ended.append(BeamOutput(request_id, search.beams.best))
            else:
                self._failed[request_id] = next(iter(search.lost.values()), _DEAD_END)
        return tuple(ended)

    def failed(self) -> dict[int, LlmdError]:
        """Take the requests for which no answer was found, and why."""
        failed, self._failed = self._failed, {}
        return failed

    def _renew(self, search: _Search) -> None:
        """Let each beam have a sequence: that of its parent, or a fork of it where another beam has that."""
        before, beams = search.group.members, search.beams.live
        members: list[Sequence] = []
        forks: list[tuple[Sequence, Sequence]] = []
        for beam in beams:
            parent = before[beam.parent]
            if parent in members:
                forks.append((parent, self._fork(parent)))
            members.append(forks[-1][1] if parent in members else parent)
        self._scheduler.renew(search.group, members, forks)
        for one in before:
            if one not in members:
                self._forget(one.request_id)
        for member, beam in zip(members, beams, strict=True):
            member.tokens.append(beam.tokens[-1])
            self._sampler.append(member.request_id, beam.tokens[-1])

    def _fork(self, parent: Sequence) -> Sequence:
        child = parent.fork(next(self._ids))
        self._owners[child.request_id] = child.owner_id
        self._sampler.fork(parent.request_id, child.request_id)
        self._grammars.fork(parent.request_id, child)
        return child

    def _forget(self, request_id: int) -> None:
        del self._owners[request_id]
        self._sampler.remove(request_id)
        self._grammars.close(request_id)
