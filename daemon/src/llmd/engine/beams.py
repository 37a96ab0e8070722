"""The beam searches of a core. A search is a group of sequences; it advances once all have their rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import msgspec

from llmd.api.errors import LlmdError, RequestError
from llmd.api.messages import Submit
from llmd.api.results import BeamOutput
from llmd.api.step import StepResult
from llmd.engine.grammars.grammars import Grammars
from llmd.sampling.beam_search import NO_PROPOSALS, BeamSearch, Proposals, read_proposals
from llmd.sampling.sampler import Sampler
from llmd.scheduler.scheduler import Scheduler
from llmd.scheduler.sequence import Sequence
from llmd.scheduler.sequence_group import SequenceGroup

_DEAD_END = RequestError(
    "the request forbids every token that could continue an answer", hint="forbid fewer tokens"
)
FIRST_ID = -2
"""First id of a beam's sequence; the ids decrease. Ids of requests are not negative, and -1 is that of
`forward`."""


class _Search(msgspec.Struct):
    """The search of one request."""

    beams: BeamSearch
    group: SequenceGroup
    proposals: dict[Sequence, Proposals] = {}
    """Proposals of the members whose rows have arrived."""
    lost: dict[int, LlmdError] = {}
    """Members that cannot continue, and why."""

    @property
    def is_ready(self) -> bool:
        return all(member in self.proposals for member in self.group.members)


class Beams:
    """The searches by request. Used by the loop thread only."""

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
        """Start a search; return its first beam as a separate request that draws no tokens."""
        first_id = next(self._ids)
        self._opened[first_id] = submit
        self._owners[first_id] = submit.request_id
        # Greedy: no random draw, and probabilities at temperature 1.
        sampling = msgspec.structs.replace(
            submit.sampling, temperature=0.0, dynamic_temperature=None, mirostat=None
        )
        return msgspec.structs.replace(submit, request_id=first_id, sampling=sampling)

    def lead(self, sequence: Sequence) -> Sequence:
        """Return the sequence; if it is the first of a search, give it a group."""
        if (submit := self._opened.pop(sequence.request_id, None)) is not None:
            assert submit.beams is not None
            sequence.group = SequenceGroup(submit.request_id, submit.beams.width, [sequence])
            sequence.sibling_key = None
            search = BeamSearch(submit.beams, sequence.stop)
            self._searches[submit.request_id] = _Search(search, sequence.group)
        return sequence

    def close(self, request_id: int) -> Iterable[int]:
        """Drop a request; return the ids of its sequences. Unknown ids have none."""
        self._searches.pop(request_id, None)
        members = [one for one, owner in self._owners.items() if owner == request_id]
        for one in members:
            del self._owners[one]
            self._opened.pop(one, None)
        return members

    def owner(self, request_id: int) -> int:
        """Return the request that a sequence belongs to."""
        return self._owners.get(request_id, request_id)

    def width(self, sequence: Sequence) -> int:
        """Return the number of beams of a sequence that has not forked yet or leads its group, else 1."""
        if sequence.group is not None:
            return sequence.group.width
        submit = self._opened.get(sequence.request_id)
        return 1 if submit is None or submit.beams is None else submit.beams.width

    def lose(self, request_id: int, error: LlmdError) -> bool:
        """Continue a search without a sequence; return False if the sequence is not in a running search."""
        search = self._searches.get(self.owner(request_id)) if request_id in self._owners else None
        if search is not None:
            search.lost[request_id] = error
        return search is not None

    def take(self, sequence: Sequence, row: int, result: StepResult) -> None:
        """Read the results of a step for a sequence of a search."""
        search = self._searches[sequence.owner_id]
        if (error := self._grammars.failure(sequence.request_id)) is not None:
            search.lost[sequence.request_id] = error
        search.proposals[sequence] = (
            NO_PROPOSALS
            if sequence.request_id in search.lost
            else read_proposals(result, row, search.beams.num_proposals, sequence.sampling.logprobs)
        )

    def advance(self) -> tuple[BeamOutput, ...]:
        """Advance the searches for which the rows of all beams have arrived; return those that ended."""
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
        """Remove and return the requests for which no answer was found, with the reason."""
        failed, self._failed = self._failed, {}
        return failed

    def _renew(self, search: _Search) -> None:
        """Give each beam a sequence: that of its parent, or a fork if another beam already has it."""
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
