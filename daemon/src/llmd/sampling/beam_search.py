"""Beam search: choose the beams to continue, collect finished answers, and decide when the search ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from llmd.api.messages import BeamParams, StopParams
from llmd.api.results import Hypothesis, Logprobs
from llmd.api.step import StepResult


class Proposals(Struct, frozen=True):
    """The best next tokens of a beam, best first."""

    ids: Sequence[int]
    scores: Sequence[float]
    """Log-probability of each token."""
    logprobs: Sequence[Logprobs] = ()
    """Logprobs that the request gets for each token, if it asks for them."""


NO_PROPOSALS = Proposals((), ())
"""Proposals of a beam that cannot continue."""


class Beam(Struct, frozen=True):
    """An unfinished answer."""

    parent: int = 0
    """Index of the beam that it continues."""
    tokens: tuple[int, ...] = ()
    total: float = 0.0
    """Sum of the log-probabilities of its tokens."""
    logprobs: tuple[Logprobs, ...] = ()


class BeamSearch:
    """The search of one request. It begins with one beam without tokens.

    In each step, the continuations of all beams are ranked by total. The best ``width`` continuations that do
    not end become the next beams. Those that end and rank among the best ``width`` of all continuations
    become answers, and the best ``width`` answers are kept. Ties are broken by the rank of the beam, then by
    the order of its proposals.

    Source: the beam search of transformers 4.57 (`GenerationMixin._beam_search`), except that it ranks totals
    in single precision.
    """

    def __init__(self, params: BeamParams, stop: StopParams) -> None:
        self._params = params
        self._stop = stop
        self._answers: list[Hypothesis] = []
        self.live: Sequence[Beam] = (Beam(),)
        """The present beams, best first; empty once the search has ended."""

    @property
    def num_proposals(self) -> int:
        """Number of proposals per beam that may matter: all that end may rank before those that continue."""
        return self._params.width + len(self._stop.stop_ids)

    @property
    def best(self) -> tuple[Hypothesis, ...]:
        """The answers that the request asks for, best first; fewer if the search found fewer."""
        return tuple(self._answers[: self._params.best])

    def advance(self, proposals: Sequence[Proposals]) -> None:
        """Choose the next beams from the proposals of the present ones, which are in the order of `live`."""
        ranked = sorted(
            (
                (beam.total + score, -parent, -place)
                for parent, (beam, proposed) in enumerate(zip(self.live, proposals, strict=True))
                for place, score in enumerate(proposed.scores[: self.num_proposals])
            ),
            reverse=True,
        )
        going: list[Beam] = []
        length = len(self.live[0].tokens) + 1
        for rank, (total, parent, place) in enumerate(ranked):
            proposed = proposals[-parent]
            finish = self._finish(proposed.ids[-place], length)
            if rank < self._params.width if finish else len(going) < self._params.width:
                beam = _continue(self.live[-parent], -parent, proposed, -place, total)
                if finish:
                    self._keep(beam, finish)
                else:
                    going.append(beam)
        self.live = () if self._has_ended(going, length) else going

    def _finish(self, token: int, length: int) -> str | None:
        if token in self._stop.stop_ids and length > self._stop.min_tokens:
            return "stop"
        return "length" if length >= self._stop.max_tokens else None

    def _keep(self, beam: Beam, finish: str) -> None:
        score = self._score(beam.total, len(beam.tokens))
        self._answers.append(Hypothesis(beam.tokens, finish, score, beam.logprobs))
        self._answers.sort(key=lambda answer: -answer.score)
        del self._answers[self._params.width :]

    def _score(self, total: float, length: int) -> float:
        return total / math.pow(length, self._params.length_penalty)

    def _has_ended(self, going: Sequence[Beam], length: int) -> bool:
        if not going:
            return True
        if len(self._answers) < self._params.width:
            return False
        if self._params.early_stopping is True:
            return True
        longest = self._params.early_stopping == "never" and self._params.length_penalty > 0
        reached = self._score(going[0].total, self._stop.max_tokens if longest else length)
        return reached <= self._answers[-1].score


def _continue(beam: Beam, parent: int, proposed: Proposals, place: int, total: float) -> Beam:
    return Beam(
        parent,
        (*beam.tokens, proposed.ids[place]),
        total,
        (*beam.logprobs, proposed.logprobs[place]) if proposed.logprobs else (),
    )


def read_proposals(result: StepResult, row: int, count: int, num_logprobs: int | None) -> Proposals:
    """Read at most ``count`` proposals of an output row, each with logprobs unless ``num_logprobs`` is None.

    Scores are the log-probabilities after edits, at the temperature 1 that the row was selected with;
    logprobs are those before edits. Forbidden tokens are not proposed.
    """
    total = float(result.edited_logsumexp[row])
    scores = [float(edited) - total for edited in result.edited[row, :count]]
    known = sum(math.isfinite(score) for score in scores)
    ids = result.ids[row, :known].tolist()
    if num_logprobs is None:
        return Proposals(ids, scores[:known])
    norm = float(result.raw_logsumexp[row])
    top_ids = tuple(result.top_ids[row, :num_logprobs].tolist())
    top = tuple(float(raw) - norm for raw in result.top_raw[row, :num_logprobs])
    logprobs = [Logprobs(float(raw) - norm, top_ids, top) for raw in result.raw[row, :known]]
    return Proposals(ids, scores[:known], logprobs)
