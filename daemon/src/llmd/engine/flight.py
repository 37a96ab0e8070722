"""A step of a plan: prepared while the one before is on its way, launched, and what it drew."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from llmd.api.messages import Logprobs
from llmd.api.step import Step, StepResult
from llmd.engine.batch import build_selection, drawing, fed, unknown_rows
from llmd.engine.chain import Chain, Flight
from llmd.pager.pager import Copies
from llmd.sampling.edits import LogitEdits
from llmd.sampling.sampler import draw, is_greedy
from llmd.scheduler.scheduler import StepPlan
from llmd.scheduler.sequence import Sequence

Edits = Mapping[int, LogitEdits]
Drawn = tuple[int, Logprobs | None]


class Departure:
    """A step that is ready but for tokens which the step before it has still to draw."""

    def __init__(self, plan: StepPlan, step: Step, copies: Copies) -> None:
        self.plan = plan
        self.copies = copies
        self.drawing = drawing(plan.chunks)
        self._step = step
        self._unknown = unknown_rows(step, plan.chunks)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do before the step on its way is done."""
        return not self.plan.chunks

    def follows_device(self, edits: Edits) -> bool:
        """Whether the device itself can choose every token that is missing, and nothing else depends on them."""
        return all(is_greedy(one.sampling) and one.request_id not in edits for _, one in self._unknown)

    def launch(self, chain: Chain, edits: Edits) -> Arrival:
        """Submit the step, once all its tokens are drawn."""
        for row, sequence in self._unknown:
            self._step.token_ids[row] = sequence.tokens[-1]
        return self._submit(chain, self._step, edits)

    def launch_behind(self, before: Arrival, chain: Chain, edits: Edits) -> Arrival:
        """Submit the step right behind another, from which the device takes the tokens."""
        if not self._unknown:
            return self._submit(chain, self._step, edits)
        rows = np.array([row for row, _ in self._unknown], np.int32)
        outputs = np.array([before.output_of[one.request_id] for _, one in self._unknown], np.int32)
        return self._submit(chain, fed(self._step, rows, outputs, before.flight.ticket), edits)

    def _submit(self, chain: Chain, step: Step, edits: Edits) -> Arrival:
        selection = build_selection(step, self.plan.chunks, edits)
        return Arrival(self, chain.submit(step, selection))


class Arrival:
    """A step on its way; whoever has it releases its ``flight``. ``output_of`` is the output row of each request."""

    def __init__(self, departure: Departure, flight: Flight) -> None:
        self.plan = departure.plan
        self.copies = departure.copies
        self.drawing = departure.drawing
        self.flight = flight
        self.output_of = {one.request_id: row for row, one in enumerate(departure.drawing)}

    def draw(self) -> list[Drawn]:
        """Wait for the step; return the next token of each sequence in ``drawing``, which are left as they were."""
        result = self.flight.wait()
        return [self._draw(result, row, sequence) for row, sequence in enumerate(self.drawing)]

    def _draw(self, result: StepResult, row: int, sequence: Sequence) -> Drawn:
        token = draw(
            result.ids[row],
            result.edited[row],
            float(result.edited_logsumexp[row]),
            sequence.sampling,
            len(sequence.tokens),
            lambda: self.flight.edited_row(row),
        )
        wanted = sequence.sampling.logprobs
        return token, None if wanted is None else _logprobs(self.flight, result, row, token, wanted)


def _logprobs(flight: Flight, result: StepResult, row: int, token: int, wanted: int) -> Logprobs:
    """Log-probabilities of the unmodified distribution."""
    found = np.flatnonzero(result.ids[row] == token)
    raw = result.raw[row, found[0]] if found.size else flight.raw_rows(np.array([row], np.int32))[0, token]
    lse = float(result.raw_logsumexp[row])
    top = (result.top_raw[row, :wanted].astype(np.float64) - lse).tolist()
    return Logprobs(float(raw) - lse, tuple(result.top_ids[row, :wanted].tolist()), tuple(top))
