"""Limit the rate of a pull's progress reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from llmd.registry.pull import PullStep

EVERY_S = 0.1


def paced(
    steps: Iterator[PullStep], *, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic
) -> Iterator[PullStep]:
    """Yield the first and the last step of each file, and at most one per ``every_s`` seconds in between."""
    held: PullStep | None = None
    shown: PullStep | None = None
    due = 0.0
    for step in steps:
        is_new = shown is None or (step.status, step.digest) != (shown.status, shown.digest)
        if is_new and held is not None:
            yield held
        if is_new or clock() >= due:
            due, shown, held = clock() + every_s, step, None
            yield step
        else:
            held = step
    if held is not None:
        yield held
