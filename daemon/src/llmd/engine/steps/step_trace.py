"""What the host and the devices did for each step, and when: what `llmd bench engine --trace` writes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import msgspec

from llmd.api.spans import Span

MOST_STEPS = 100_000
"""Steps that a tracer keeps, the newest ones: about a hundred megabytes."""

_NOTHING: AbstractContextManager[None] = nullcontext()


class HostSpan(msgspec.Struct, frozen=True):
    """A time in which the loop of the engine worked on one step."""

    name: str
    start_s: float
    """On the tracer's clock."""
    end_s: float


class TracedStep(msgspec.Struct, frozen=True):
    """One step, from its plan to its last token. The times are those of ``time.perf_counter``."""

    number: int
    """From 1, in the order of their ends."""
    start_s: float
    end_s: float
    num_rows: int
    num_sequences: int
    host: tuple[HostSpan, ...]
    """In order of their start; they do not overlap, nor do those of different steps."""
    stages: tuple[Sequence[Span], ...]
    """`Stage.spans` of each stage; empty for a stage whose device says nothing."""


class StepTrace:
    """Measures one step; this one measures nothing."""

    def span(self, name: str) -> AbstractContextManager[None]:
        """Measure a piece of the loop's work."""
        return _NOTHING

    def end(
        self, num_rows: int, num_sequences: int, stages: Callable[[], tuple[Sequence[Span], ...]]
    ) -> None:
        """Keep the step, whose results were used; ``stages`` reads `TracedStep.stages`."""


UNTRACED = StepTrace()


class _Measured(StepTrace):
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._spans: list[HostSpan] = []

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        start_s = self._tracer.clock()
        try:
            yield
        finally:
            self._spans.append(HostSpan(name, start_s, self._tracer.clock()))

    def end(
        self, num_rows: int, num_sequences: int, stages: Callable[[], tuple[Sequence[Span], ...]]
    ) -> None:
        spans = tuple(self._spans)
        self._tracer.keep(spans, num_rows, num_sequences, stages())


class Tracer:
    """Measures the steps of an engine core, and keeps those that have ended."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.steps: deque[TracedStep] = deque(maxlen=MOST_STEPS)
        self._num_ended = 0

    def begin(self) -> StepTrace:
        """Begin to measure a step. It is kept once it has ended."""
        return _Measured(self)

    def keep(
        self,
        host: tuple[HostSpan, ...],
        num_rows: int,
        num_sequences: int,
        stages: tuple[Sequence[Span], ...],
    ) -> None:
        """Keep a step that ends now."""
        self._num_ended += 1
        times = host[0].start_s, self.clock()
        self.steps.append(TracedStep(self._num_ended, *times, num_rows, num_sequences, host, stages))
