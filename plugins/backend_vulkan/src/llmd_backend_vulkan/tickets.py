"""What each ticket of a stage has for itself: memory of the host, and its recordings."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from llmd.api import HiddenRef, Program, Selection, StageLimits
from llmd.api.spans import Span, Stopwatch
from llmd.api.step import Float32
from llmd_backend_vulkan.commands import Buffer
from llmd_backend_vulkan.context import stride_of
from llmd_backend_vulkan.outputs import Outputs
from llmd_backend_vulkan.outputs.outputs import host_words
from llmd_backend_vulkan.runtime import Recording, Runtime
from llmd_backend_vulkan.step_clock import StepClock
from llmd_backend_vulkan.step_memory import StepLayout

LONGEST_STEP_S = 600.0
"""A device that takes longer for a step is lost."""


class TicketMemory:
    """Memory of the host that the device reads and writes in place; later tickets use it again."""

    def __init__(
        self, runtime: Runtime, program: Program, limits: StageLimits, outputs: Outputs | None
    ) -> None:
        """Take the memory. ``outputs`` are the output rows, if the program ends with the head.

        Raises:
            MemoryBudgetError: there is not enough.
        """
        sizes = _sizes(program, limits)
        buffers = {name: runtime.host(size) for name, size in sizes.items() if size}
        self.inputs = buffers["inputs"]
        """The arrays of a step."""
        self.hidden_in = buffers.get("hidden_in")
        self.hidden_out = buffers.get("hidden_out")
        self.taps = {part: buffers[f"tap {part}"] for part in program.taps}
        self.outputs = outputs
        self.running: list[Recording] = []
        """What was submitted for the ticket and may still run."""
        self._buffers = list(buffers.values())

    @staticmethod
    def num_words(program: Program, limits: StageLimits) -> int:
        """Return the words of main memory that a ticket takes."""
        return sum(_sizes(program, limits).values()) + host_words(program, limits)

    @property
    def buffers(self) -> list[Buffer]:
        """All buffers of the host."""
        return [*self._buffers, *([] if self.outputs is None else self.outputs.buffers)]

    def reach(self, runtime: Runtime, timeout_s: float = LONGEST_STEP_S) -> None:
        """Wait until nothing of it runs.

        Raises:
            DeviceLostError: that takes longer than ``timeout_s``.
        """
        end = time.monotonic() + timeout_s
        while self.running:
            if not self.running[0].wait(max(0.0, end - time.monotonic())):
                raise runtime.lost(f"the step did not finish within {timeout_s:g} s")
            del self.running[0]


def _sizes(program: Program, limits: StageLimits) -> dict[str, int]:
    """Return the words of each buffer of a ticket; 0 of those that it does not need."""
    rows, hidden = limits.max_rows, limits.max_rows * stride_of(program.hidden_size)
    return {
        "inputs": StepLayout.of(program, limits, rows).end,
        "hidden_in": 0 if program.hidden_in is None else hidden,
        "hidden_out": 0 if program.hidden_out is None else rows * stride_of(program.output_size),
        **{f"tap {part}": hidden for part in program.taps},
    }


@dataclass
class Flight:
    """A ticket in flight."""

    place: int
    """Index of its memory."""
    num_rows: int
    selection: Selection | None
    times: Stopwatch
    """Of the host."""
    recordings: list[Recording] = field(default_factory=list)
    """What was submitted for it."""

    def spans(self, clock: StepClock) -> list[Span]:
        """Return when host and device worked on it, after it has run."""
        of_device = [span for recording in self.recordings for span in recording.spans(clock.seconds)]
        return [*self.times.spans, *of_device]


class HiddenRows(HiddenRef):
    """See `llmd.api.HiddenRef`."""

    def __init__(self, runtime: Runtime, memory: TicketMemory, rows: Buffer, shape: tuple[int, int]) -> None:
        self._runtime = runtime
        self._memory = memory
        self._rows = rows
        self._shape = shape

    def host(self) -> Float32:
        self._memory.reach(self._runtime)
        return matrix_of(self._rows, *self._shape)


def matrix_of(buffer: Buffer, rows: int, width: int) -> Float32:
    """Return a copy of the first rows of a float32 matrix ``[…][stride]`` in host memory."""
    stride = stride_of(width)
    values = buffer.view[: rows * stride].view(np.float32).reshape(rows, stride)
    return np.ascontiguousarray(values[:, :width])
