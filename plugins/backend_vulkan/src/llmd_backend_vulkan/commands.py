"""What a device runs: dispatches and copies in segments, and how these are cut into submissions."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.spans import SpanKind

Words = NDArray[np.uint32]

WORD = 4
"""Bytes of a word."""

MOST_WORK = 2e10
"""Multiply-adds of a submission. A slow GPU takes some tenths of a second for them; many drivers end what
takes longer than two seconds."""


class Shader(msgspec.Struct, frozen=True):
    """A shader with the values of its specialization constants."""

    name: str
    """Name of the file in ``shaders/``, without ``.comp``."""
    constants: tuple[int, ...] = ()
    """In order of their ids."""


class Buffer:
    """Memory of the device, or of the host where shaders read and write it in place."""

    def __init__(self, tensor: Any, number: int, num_words: int) -> None:
        self.tensor = tensor
        self.number = number
        """Unique in its runtime."""
        self.num_words = num_words

    @property
    def view(self) -> Words:
        """The words of host memory, shared with the device."""
        words: Words = self.tensor.data()
        return words


class Dispatch(msgspec.Struct, frozen=True):
    """A shader with everything that its run needs."""

    shader: Shader
    buffers: tuple[Buffer, ...]
    """In order of the bindings."""
    constants: tuple[int, ...]
    """The words of the push constants; as many for each dispatch of a shader."""
    groups: tuple[int, int, int]
    """Work groups in x, y and z."""
    work: float = 0.0
    """Multiply-adds, as far as they matter: they bound submissions."""


class Copy(msgspec.Struct, frozen=True):
    """A copy from memory of the host to that of the device, which runs while shaders do."""

    source: Buffer
    at: int
    """First word in the source."""
    target: Buffer
    target_at: int
    """First word in the target."""
    num_words: int


class Slot:
    """Orders the uses of a part of the device's memory: it is filled, then read, in turn.

    Its members are semaphores of Kompute, each of which is signalled and then waited for once.
    """

    def __init__(self, filled: Any, freed: Any) -> None:
        self.filled = filled
        """Signalled by the copies, awaited by the shaders that read."""
        self.freed = freed
        """Signalled by these, awaited by the next copies."""


class Segment(msgspec.Struct, frozen=True):
    """Phases of dispatches. A phase sees what earlier ones wrote; within one, nothing depends on another."""

    phases: Sequence[Sequence[Dispatch]]
    kind: SpanKind = "device"
    """`llmd.api.spans.Span.kind`"""
    name: str = ""
    """`llmd.api.spans.Span.name`"""
    slot: Slot | None = None
    """What its shaders read and no other segment's do; None: nothing of that kind."""
    copies: tuple[Copy, ...] = ()
    """What fills the slot before."""


class Submission(msgspec.Struct, frozen=True):
    """What is submitted at once: either pieces of segments or copies."""

    pieces: tuple[Segment, ...] = ()
    """Parts of segments; their slots and copies do not count."""
    copies: tuple[Copy, ...] = ()
    name: str = ""
    """Of the copies, for traces."""
    waits: tuple[Any, ...] = ()
    """Semaphores that are waited for."""
    signals: tuple[Any, ...] = ()
    """Semaphores that are signalled at the end."""


def submissions_of(segments: Sequence[Segment], *, has_barriers: bool) -> list[Submission]:
    """Cut segments into submissions that take a bounded time, in the order in which they are submitted.

    The copies of a segment are submitted before the shaders of the segment with copies before it, so that
    both can run at once: two slots are in use at a time. Without barriers, each phase is a submission.
    """
    found: list[Submission] = []
    to_fill = deque(segment for segment in segments if segment.slot is not None)

    def fill() -> None:
        if to_fill:
            one = to_fill.popleft()
            assert one.slot is not None, "only those are listed"
            waits, signals = (one.slot.freed,), (one.slot.filled,)
            found.append(Submission(copies=one.copies, name=one.name, waits=waits, signals=signals))

    fill()
    fill()
    for slot, run in itertools.groupby(segments, key=lambda segment: segment.slot):
        parts = [Submission(pieces) for pieces in _cut(run, has_barriers=has_barriers)]
        if slot is not None:
            parts[0] = msgspec.structs.replace(parts[0], waits=(slot.filled,))
            parts[-1] = msgspec.structs.replace(parts[-1], signals=(slot.freed,))
        found += parts
        if slot is not None:
            fill()
    return found


def _cut(segments: Iterable[Segment], *, has_barriers: bool) -> Iterator[tuple[Segment, ...]]:
    """Cut segments where their work is too much for a submission."""
    parts: list[list[tuple[Segment, list[Dispatch]]]] = []
    work = 0.0
    for segment in segments:
        for phase in filter(None, segment.phases):
            if not parts or not has_barriers:
                parts.append([])
                work = 0.0
            parts[-1].append((segment, []))
            for one in phase:
                if work and work + one.work > MOST_WORK:
                    parts.append([(segment, [])])
                    work = 0.0
                parts[-1][-1][1].append(one)
                work += one.work
    for part in parts:
        runs = itertools.groupby(((one, phase) for one, phase in part if phase), key=lambda pair: id(pair[0]))
        yield tuple(_piece(list(run)) for _, run in runs)


def _piece(run: Sequence[tuple[Segment, list[Dispatch]]]) -> Segment:
    return msgspec.structs.replace(run[0][0], phases=[phase for _, phase in run])
