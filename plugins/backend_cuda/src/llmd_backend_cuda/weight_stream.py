"""Weights that are copied to the card in each step, while it computes the parts before theirs.

The streamed parts of a program take turns in two buffers. A copy begins when the part that had the buffer
before is computed; a part is computed when its copy has ended. Both streams wait for each other by events, so
the host queues a whole step without waiting.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager

from llmd.api import Weight
from llmd_backend_cuda.loaded import HostWeight, Item, Use
from llmd_backend_cuda.runtime import Event, Runtime
from llmd_backend_cuda.step_marks import StepMarks

BUFFERS = 2

StreamedPart = Mapping[tuple[Weight, Use], HostWeight]
"""The weights of a streamed part, in the order in which they are copied."""


class _Buffer:
    """Memory for the weights of one part at a time."""

    def __init__(self, runtime: Runtime, num_bytes: int) -> None:
        self.memory = runtime.allocate(num_bytes)
        self.number: int | None = None
        """The streamed part whose weights are in it, or will be by ``copied``."""
        self.copied: Event | None = None
        self.computed: Event | None = None
        """The point of the runtime's stream from which on nothing reads what was copied last."""


class WeightStream:
    """The streamed weights of a stage. Each step calls `begin`, and then `reading` for each part."""

    def __init__(self, runtime: Runtime, parts: Mapping[int, StreamedPart]) -> None:
        """Take the buffers. ``parts`` are in the order in which they are computed; each has weights.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        self._runtime = runtime
        self._copies = runtime.copy_stream()
        self._parts = list(parts.items())
        self._numbers = {part: number for number, part in enumerate(parts)}
        size = _largest(parts.values())
        self._buffers = [_Buffer(runtime, size) for _ in range(_num_buffers(len(parts)))]

    @staticmethod
    def num_bytes(parts: Iterable[StreamedPart]) -> int:
        """Return the bytes of the buffers for some streamed parts."""
        found = list(parts)
        return _num_buffers(len(found)) * _largest(found)

    @property
    def parts(self) -> Container[int]:
        """Indices of the streamed parts."""
        return self._numbers.keys()

    def items(self) -> dict[tuple[Weight, Use], Item]:
        """Return the weights at the addresses to which they are copied."""
        return {
            key: weight.at(self._buffer(number).memory.pointer + first)
            for number, (_, part) in enumerate(self._parts)
            for first, (key, weight) in zip(_offsets(part), part.items(), strict=True)
        }

    def begin(self, marks: StepMarks) -> None:
        """Begin to copy the weights of the first parts of a step, as soon as their buffers are free."""
        for number in range(len(self._buffers)):
            self._copy(number, marks)

    @contextmanager
    def reading(self, part: int, marks: StepMarks) -> Iterator[None]:
        """Let what is launched inside wait for the weights of a part, and copies to its buffer wait for that.

        Afterwards, the weights that are next in the buffer begin to be copied.
        """
        number = self._numbers[part]
        self._copy(number, marks)  # unless it has begun; it has not after a step that failed
        buffer = self._buffer(number)
        assert buffer.copied is not None, "the copy has begun"
        self._runtime.wait_for(buffer.copied)
        try:
            yield
        finally:
            buffer.computed = self._runtime.record()
        if number + BUFFERS < len(self._parts):
            self._copy(number + BUFFERS, marks)

    def _copy(self, number: int, marks: StepMarks) -> None:
        buffer = self._buffer(number)
        if buffer.number == number:
            return
        if buffer.computed is not None:
            self._copies.wait_for(buffer.computed)
        buffer.number = None  # what is there is overwritten, even if one of the copies fails
        index, part = self._parts[number]
        with marks.around(self._copies, "weights", part_name(index)):
            for first, weight in zip(_offsets(part), part.values(), strict=True):
                self._copies.upload(buffer.memory, first, weight.contents)
        buffer.copied = self._copies.record()
        buffer.number = number

    def _buffer(self, number: int) -> _Buffer:
        return self._buffers[number % len(self._buffers)]


def part_name(part: int) -> str:
    """Return the name of a part in traces."""
    return f"part {part}"


def _num_buffers(num_parts: int) -> int:
    return min(BUFFERS, num_parts)


def _largest(parts: Iterable[StreamedPart]) -> int:
    """Return the bytes of the largest part."""
    return max((sum(weight.contents.nbytes for weight in part.values()) for part in parts), default=0)


def _offsets(part: StreamedPart) -> list[int]:
    """Return where each weight of a part is in its buffer."""
    offsets, end = [], 0
    for weight in part.values():
        offsets.append(end)
        end += weight.contents.nbytes
    return offsets
