"""A step of a plan: prepared while the previous step is in flight, then launched, then sampled from."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.draws import HOST
from llmd.api.results import Logprobs
from llmd.api.samplers import SamplingParams
from llmd.api.step import LateEdits, Selection, Step, StepResult
from llmd.engine.grammars.grammars import Grammars
from llmd.engine.grammars.row_masks import RowMasks, masked_rows
from llmd.engine.steps.batch import assumed, build_selection, drawing, fed, flat_edits, unknown_rows
from llmd.engine.steps.pipeline import Pipeline, StepTickets
from llmd.engine.steps.step_trace import UNTRACED, StepTrace
from llmd.pager.pager import Copies
from llmd.sampling.edit_table import NO_EDITS
from llmd.sampling.sampler import DrawnTokens, PreparedDraws, Sampler
from llmd.sampling.sampler_chain import certain, is_greedy, wants_final_logprobs
from llmd.scheduler.chunk import StepPlan


class SampledTokens(msgspec.Struct, frozen=True):
    """The next token of each sequence in `InFlightStep.drawing`."""

    draws: DrawnTokens
    logprobs: Mapping[int, Logprobs]
    """By output row, for requests that ask for them."""
    result: StepResult
    """What the device returned; valid until the step's tickets are released."""

    @property
    def tokens(self) -> list[int]:
        return self.draws.tokens


class PreparedStep:
    """A step that is ready, except for tokens that the step in flight, ``before``, has not drawn yet."""

    def __init__(
        self,
        plan: StepPlan,
        step: Step,
        copies: Copies,
        sampler: Sampler,
        grammars: Grammars,
        before: InFlightStep | None,
        *,
        device_draws: bool = False,
        trace: StepTrace = UNTRACED,
    ) -> None:
        """With ``device_draws``, the device draws the tokens that it can and takes edits late."""
        self.plan = plan
        self.trace = trace
        self.planned_at = time.perf_counter()
        self.copies = copies
        self.drawing = drawing(plan.chunks)
        self.assumed = assumed(plan.chunks)
        self._step = step
        self._sampler = sampler
        self._grammars = grammars
        unknown = unknown_rows(step, plan.chunks)
        self._device_draws = device_draws
        self._by_device = all(
            sampler.is_common(one.request_id) if device_draws else is_greedy(one.sampling)
            for _, one in unknown
        )
        self._edited = [
            one.request_id for _, one in unknown if sampler.edits_logits(one.request_id)
        ]  # their edits depend on missing tokens
        self._bound = any(grammars.binds(one.request_id) for _, one in unknown)
        self._rows = np.array([row for row, _ in unknown], np.int32)
        outputs = [before.output_of[one.request_id] for _, one in unknown] if before else []
        self._outputs = np.array(outputs, np.int32)
        self._masked: list[bool] = []
        self.drawn_by_device: NDArray[np.bool_] | None = None
        """Rows bool ``[N]`` whose tokens the device draws; None: the host draws all."""
        self._selection = None if self._edited else self._select()

    @property
    def num_rows(self) -> int:
        """Rows of the step."""
        return self._step.num_rows

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do until the step in flight is done."""
        return not self.plan.chunks

    @property
    def lacks_tokens(self) -> bool:
        """Whether rows of the step need tokens that the step before has yet to draw."""
        return bool(self._rows.size)

    @property
    def follows_device(self) -> bool:
        """Whether the device can choose all missing tokens, and takes what depends on them late."""
        return self._by_device and (self._device_draws or not self._edited)

    @property
    def needs_appended(self) -> bool:
        """Whether edits or masks of this step depend on missing tokens, which must then be appended first."""
        return bool(self._edited) or self._bound

    def launch_behind(self, before: InFlightStep | None, pipeline: Pipeline) -> InFlightStep:
        """Submit the step directly after ``before``, from which the device takes the missing tokens.

        `InFlightStep.complete_behind` applies edits and masks that depend on these tokens, once they are
        appended.
        """
        if before is not None and self._rows.size:
            self._step = fed(self._step, self._rows, self._outputs, before.tickets.ticket)
        if not self.needs_appended:
            return self.launch(pipeline)
        with self.trace.span("prepare"):
            selection = self._selection or self._select(late=self._edited)
        return InFlightStep(self, self._sampler, self._submit(pipeline, selection), is_complete=False)

    def launch(self, pipeline: Pipeline, drawn: Sequence[int] = ()) -> InFlightStep:
        """Submit the step; ``drawn`` are the tokens of the previous step, by output row."""
        with self.trace.span("prepare"):
            if drawn:
                self._step.token_ids[self._rows] = np.array(drawn, np.int32)[self._outputs]
            selection = self._selection or self._select()
            masks = self.begin_masks()
        in_flight = InFlightStep(self, self._sampler, self._submit(pipeline, selection))
        try:
            in_flight.mask(masks)
        except BaseException:
            in_flight.tickets.release()
            raise
        return in_flight

    def _submit(self, pipeline: Pipeline, selection: Selection) -> StepTickets:
        with self.trace.span("submit"):
            return pipeline.submit(self._step, selection)

    def is_masked(self, row: int) -> bool:
        """Return whether an output row has a mask."""
        return bool(self._masked) and self._masked[row]

    def late_edits(self) -> LateEdits | None:
        """Return the edits that depended on missing tokens, now that these are appended; None: none did."""
        if not self._edited:
            return None
        late = set(self._edited)
        ids = [one.request_id for one in self.drawing if one.request_id in late]
        return flat_edits(self._sampler.edits(ids) or [NO_EDITS] * len(ids))

    def begin_masks(self) -> RowMasks | None:
        """Begin to fill the masks of the step, whose tokens are all appended; None if it needs no masks."""
        if not self._masked:
            return None
        return RowMasks(self.drawing, self._masked, self._sampler, self._grammars, self.assumed)

    def _select(self, late: Sequence[int] = ()) -> Selection:
        self._masked = masked_rows(self.drawing, self._sampler, self._grammars)
        selection = build_selection(
            self._step,
            self.plan.chunks,
            self._sampler,
            self._masked,
            assumes=self.assumed,
            late=late,
            by_device=self._device_draws,
        )
        if selection.draws is not None:
            self.drawn_by_device = selection.draws.kinds[: len(self.drawing)] != HOST
        return selection


class InFlightStep:
    """A step in flight. Its owner releases its ``tickets``. ``output_of`` maps requests to output rows."""

    def __init__(
        self,
        prepared: PreparedStep,
        sampler: Sampler,
        tickets: StepTickets,
        *,
        is_complete: bool = True,
    ) -> None:
        self.is_complete = is_complete
        """Whether the step has all of its edits and masks."""
        self.plan = prepared.plan
        self.trace = prepared.trace
        self.planned_at = prepared.planned_at
        self.copies = prepared.copies
        self.drawing = prepared.drawing
        self.tickets = tickets
        self._prepared = prepared
        self._sampler = sampler
        self._masks: RowMasks | None = None
        self.output_of = {one.request_id: row for row, one in enumerate(prepared.drawing)}
        self.assumed = prepared.assumed
        """See `llmd.engine.steps.batch.assumed`."""
        for row, tokens in enumerate(self.assumed):
            if tokens:  # how many tokens its sequence gets is not known yet
                self.output_of.pop(self.drawing[row].request_id, None)

    def mask(self, masks: RowMasks | None) -> None:
        """Wait for the masks of the step and apply them."""
        if masks is not None:
            self._masks = masks
            with self.trace.span("grammar"):
                self.tickets.apply_masks(masks.filled())

    def complete_behind(self) -> None:
        """Apply the late edits and masks of `PreparedStep.launch_behind`, now that the tokens before it are
        appended.

        Do nothing if the step has them already.
        """
        if self.is_complete:
            return
        with self.trace.span("edits"):
            masks = self._prepared.begin_masks()  # the grammar process fills them meanwhile
            edits = self._prepared.late_edits()
            if edits is not None:
                self.tickets.apply_edits(edits)
        self.mask(masks)
        self.is_complete = True

    def draw(self) -> SampledTokens:
        """Wait for the step and draw its tokens; does not change sequences or the sampler."""
        # Prepared while the device works.
        with self.trace.span("sampling"):
            prepared = self._sampler.prepare(
                [one.request_id for one in self.drawing],
                self._positions(),
                self._prepared.drawn_by_device,
            )
        with self.trace.span("wait"):
            result = self.tickets.wait()
        with self.trace.span("sampling"):
            return self._sampled(prepared, result)

    def end_trace(self) -> None:
        """Keep the measured times of the step, if it is traced. Its tickets are not released yet."""
        self.trace.end(self._prepared.num_rows, len(self.plan.chunks), self.tickets.spans)

    def _sampled(self, prepared: PreparedDraws, result: StepResult) -> SampledTokens:
        if self._masks is not None:
            self._masks.refuse_empty(result.edited[:, 0])
        draws = self._sampler.draw(prepared, _first_rows(result, len(self.drawing)), self.tickets.edited_row)
        logprobs = {
            row: _logprobs(self.tickets, result, row, draws, one.sampling)
            for row, one in enumerate(self.drawing)
            if one.sampling.logprobs is not None and one.group is None
        }
        return SampledTokens(draws, logprobs, result)

    def reaches(self, row: int, drawn: SampledTokens) -> bool:
        """Return whether the token of a row that assumes proposals counts, given that the row before does."""
        if drawn.tokens[row - 1] != self.assumed[row][-1]:
            return False
        # A row whose tokens are all forbidden has no token; the next step fails its request.
        return not self._prepared.is_masked(row) or bool(drawn.result.edited[row, 0] > -np.inf)

    def _positions(self) -> list[int]:
        """Return the positions of the tokens that the rows draw."""
        if not self.assumed:
            return [len(one.tokens) for one in self.drawing]
        pairs = zip(self.drawing, self.assumed, strict=True)
        return [len(one.tokens) + len(tokens) for one, tokens in pairs]


def _first_rows(result: StepResult, count: int) -> StepResult:
    """Return the rows that tokens are drawn from; scored rows follow them."""
    if len(result.ids) == count:
        return result
    fields = {name: value for name, value in msgspec.structs.asdict(result).items() if value is not None}
    return msgspec.structs.replace(result, **{name: value[:count] for name, value in fields.items()})


def _logprobs(
    tickets: StepTickets, result: StepResult, row: int, draws: DrawnTokens, params: SamplingParams
) -> Logprobs:
    """Return logprobs before all edits, or after sampling if the request asks for those."""
    token = draws.tokens[row]
    if wants_final_logprobs(params):
        return draws.logprobs.get(row) or certain(token, params)
    chosen, *named = _raw_logits(tickets, result, row, (token, *params.logprob_ids))
    lse = float(result.raw_logsumexp[row])
    if params.logprob_ids:
        return Logprobs(chosen - lse, params.logprob_ids, tuple(raw - lse for raw in named))
    top = (result.top_raw[row, : params.logprobs].astype(np.float64) - lse).tolist()
    return Logprobs(chosen - lse, tuple(result.top_ids[row, : params.logprobs].tolist()), tuple(top))


def _raw_logits(tickets: StepTickets, result: StepResult, row: int, ids: Sequence[int]) -> list[float]:
    """Return the raw logits of some tokens; fetch the whole row if one of them is not a candidate."""
    candidates = result.ids[row].tolist()
    if all(token in candidates for token in ids):
        return [float(result.raw[row, candidates.index(token)]) for token in ids]
    whole = tickets.raw_rows(np.array([row], np.int32))[0]
    return [float(whole[token]) for token in ids]
