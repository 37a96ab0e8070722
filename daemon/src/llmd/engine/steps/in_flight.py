"""The steps in flight: plan steps ahead, and launch each as soon as it has the tokens that it needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from llmd.api.errors import LlmdError
from llmd.engine.grammars.grammars import Grammars
from llmd.engine.steps.batch import build_step
from llmd.engine.steps.overlap import Overlap, choose_overlap
from llmd.engine.steps.pipeline import Pipeline
from llmd.engine.steps.step import InFlightStep, PreparedStep
from llmd.engine.steps.step_trace import UNTRACED, Tracer
from llmd.pager.pager import Pager
from llmd.sampling.sampler import Sampler
from llmd.scheduler.scheduler import Scheduler


class StepsInFlight:
    """Up to ``depth`` steps in flight, which end in the order of their launch.

    A model with one stage runs all sequences in every step: the next step follows the newest one, and takes
    from it the tokens that the host does not know yet. A model with several stages divides its sequences
    among the steps (`Scheduler`), so that each stage works on another step.

    A step whose tokens the host must draw first is planned early and launched once it has them; no further
    step is planned before that.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        scheduler: Scheduler,
        pager: Pager,
        sampler: Sampler,
        grammars: Grammars,
        depth: int,
        tracer: Tracer | None = None,
        adapters: Sequence[str] = (),
    ) -> None:
        """``tracer`` measures the steps. ``adapters`` are the names of the model's adapters, by number."""
        self._adapters = adapters
        self._tracer = tracer
        self._pipeline = pipeline
        self._scheduler = scheduler
        self._pager = pager
        self._sampler = sampler
        self._grammars = grammars
        self._depth = depth
        self._steps: deque[InFlightStep] = deque()  # oldest first
        self._waiting: tuple[PreparedStep, Overlap] | None = None  # it lacks tokens of the newest step
        self._failure: LlmdError | None = None

    def __len__(self) -> int:
        return len(self._steps)

    def fill(self) -> None:
        """Plan and launch steps until ``depth`` are in flight or nothing more can be planned.

        Raises:
            LlmdError: a launch failed, now or since the last call. The caller must call `drop`.
        """
        if self._failure is not None:
            raise self._failure
        while self._waiting is None and len(self._steps) < self._depth:
            newest = self._steps[-1] if self._steps else None
            if newest is not None and not newest.is_complete:
                return  # a step cannot be fed from one that lacks edits or masks
            following = self._prepare(newest)
            overlap = self._overlap(following)
            if overlap is Overlap.NONE:
                return
            if overlap is Overlap.BEHIND:
                self._steps.append(following.launch_behind(newest, self._pipeline))
            else:
                self._waiting = following, overlap

    def take(self) -> InFlightStep:
        """Remove and return the oldest step; its owner releases it."""
        return self._steps.popleft()

    def on_drawn(self, tokens: list[int]) -> None:
        """Continue after the tokens of the step of `take` were drawn, by output row."""
        self._launch(Overlap.AFTER_DRAW, tokens)

    def on_appended(self, tokens: list[int]) -> None:
        """Continue after these tokens were appended to their sequences."""
        self._launch(Overlap.AFTER_APPEND, tokens)
        if self._steps and self._failure is None:
            try:
                self._steps[0].complete_behind()
            except LlmdError as error:
                self._failure = error

    def drop(self) -> None:
        """Drop all steps after a failure; the scheduler plans their work again."""
        self._failure = self._waiting = None
        while self._steps:
            self._steps.popleft().tickets.release()
        self._scheduler.rewind()

    def _launch(self, when: Overlap, tokens: list[int]) -> None:
        """Launch the planned step if its time has come, and if the newest step is the one that was drawn.

        The next `fill` raises the error of a failure, so that the tokens just drawn are not lost.
        """
        if self._steps or self._waiting is None or self._waiting[1] is not when:
            return
        (following, _), self._waiting = self._waiting, None
        try:
            self._steps.append(following.launch(self._pipeline, tokens))
        except LlmdError as error:
            self._failure = error

    def _prepare(self, newest: InFlightStep | None) -> PreparedStep:
        trace = UNTRACED if self._tracer is None else self._tracer.begin()
        with trace.span("plan"):
            plan = self._scheduler.plan({} if newest is None else newest.output_of)
            tables = self._pager.tables([chunk.sequence.request_id for chunk in plan.chunks])
            copies = self._pager.copies()
            step = build_step(plan.chunks, tables, copies, self._adapters)
            return PreparedStep(
                plan,
                step,
                copies,
                self._sampler,
                self._grammars,
                newest,
                device_draws=self._pipeline.draws,
                trace=trace,
            )

    def _overlap(self, following: PreparedStep) -> Overlap:
        return choose_overlap(
            is_empty=following.is_empty,
            lacks_tokens=following.lacks_tokens,
            device_feeds_itself=self._pipeline.feeds_itself,
            follows_device=following.follows_device,
            needs_appended=following.needs_appended,
        )
