"""When a stage worked on a step, for traces of steps (`llmd.api.features.SPANS`)."""

from __future__ import annotations

import time
from typing import Literal

import msgspec

SpanKind = Literal["launch", "device", "copy", "weights"]

CLOCK_TOLERANCE_S = 1e-3
"""How much a time of a `Span` may differ from the host's clock: that of a card drifts."""


class Span(msgspec.Struct, frozen=True):
    """A time in which a stage worked on one step.

    Spans of one kind do not overlap within a stage, nor do those of different steps.
    """

    kind: SpanKind
    """``launch``: the host prepares work of the device and queues it. ``device``: the device computes.
    ``copy``: bytes move between the host and the device, or between blocks. ``weights``: streamed weights are
    copied to the device, which may compute meanwhile (`llmd.api.features.STREAMS`)."""
    name: str
    """What was done, in a word or two, such as ``layers``; for people."""
    start_s: float
    """On the clock of ``time.perf_counter``."""
    end_s: float
    """On the same clock, not before ``start_s``."""


class Stopwatch:
    """Times what the host does for one step, one piece after the other; for stages that compute on the host.

    Does nothing unless ``is_on``, which is `StageLimits.spans`.
    """

    def __init__(self, *, is_on: bool) -> None:
        self.spans: list[Span] = []
        """What was timed."""
        self._is_on = is_on
        self._start_s = 0.0
        self.start()

    def start(self) -> None:
        """Start again, after other work."""
        if self._is_on:
            self._start_s = time.perf_counter()

    def stop(self, kind: SpanKind, name: str) -> None:
        """Add what was done since the last start or stop."""
        if self._is_on:
            start_s, self._start_s = self._start_s, time.perf_counter()
            self.spans.append(Span(kind, name, start_s, self._start_s))
