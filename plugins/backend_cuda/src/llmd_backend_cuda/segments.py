"""Launches between waits for weights."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import groupby

import msgspec

from llmd_backend_cuda.runtime import Launch


class Segment(msgspec.Struct, frozen=True):
    """Launches that follow one another without a wait."""

    part: int | None
    """The part whose streamed weights they read; None: all weights that they read stay on the card."""
    launches: tuple[Launch, ...]


def segments_of(launches: Iterable[tuple[int, Launch]], streamed: Container[int]) -> tuple[Segment, ...]:
    """Divide launches, which come with their part; neighbours whose weights stay on the card are one segment.

    The first launch of a streamed part must not overlap with the one before it: such a kernel reads weights
    before its predecessor has ended, and so perhaps before they are copied.
    """
    segments = []
    for part, found in groupby(launches, key=lambda one: one[0] if one[0] in streamed else None):
        alike = [launch for _, launch in found]
        if part is not None:
            alike[0] = msgspec.structs.replace(alike[0], overlaps=False)
        segments.append(Segment(part, tuple(alike)))
    return tuple(segments)
