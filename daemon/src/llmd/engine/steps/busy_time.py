"""How long a device worked on a step."""

from __future__ import annotations

from collections.abc import Sequence

from llmd.api.spans import Span


def busy_seconds(spans: Sequence[Span]) -> float:
    """Return the seconds in which a stage computed or copied for a step, by its `Stage.spans`.

    What it did at the same time counts once. Launches do not count: the device may still be busy with the
    step before, or another device with this one.
    """
    busy_s, reached_s = 0.0, float("-inf")
    for span in sorted(spans, key=lambda one: one.start_s):
        if span.kind != "launch":
            busy_s += max(0.0, span.end_s - max(span.start_s, reached_s))
            reached_s = max(reached_s, span.end_s)
    return busy_s
