"""What each ticket of a stage has for itself: pinned memory, outputs, and the point where its step ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from llmd.api import Program, Selection, StageLimits
from llmd.api.spans import Stopwatch
from llmd.api.step import Float32, Int32
from llmd_backend_cuda.outputs import Outputs
from llmd_backend_cuda.runtime import Event, Memory, Runtime
from llmd_backend_cuda.step_marks import StepMarks
from llmd_backend_cuda.step_memory import StepMemory

LONGEST_STEP_S = 600.0
"""A device that takes longer for a step is lost."""

_MOST_COPIES = 1024
"""Copies of blocks that there is memory for. For more, memory is taken for that step."""
COPIES_BYTES = 4 * (1 + 3 * _MOST_COPIES)
"""Bytes of that memory, of each ticket."""


@dataclass
class TicketMemory:
    """Memory of one ticket, used again by later ones."""

    staging: Int32
    """Pinned: the arrays of the step."""
    outputs: Outputs | None
    """None if the program does not end with the head."""
    hidden: Float32
    """Pinned ``[max_rows, output_size]``."""
    taps: dict[int, Float32]
    """Pinned ``[max_rows, hidden_size]`` for each tapped part."""
    copies: Int32
    """Pinned: the number of block copies, then `Step.copies`."""
    copies_memory: Memory
    """Device memory for the same."""
    end: Event | None = None
    """The end of the last step that used it."""

    @classmethod
    def allocate(
        cls, runtime: Runtime, program: Program, limits: StageLimits, step: StepMemory
    ) -> TicketMemory:
        """Allocate the memory of a ticket.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """

        def rows(width: int) -> Float32:
            return (
                runtime.pinned(max(1, 4 * limits.max_rows * width))
                .view(np.float32)
                .reshape(-1, max(width, 1))
            )

        return cls(
            staging=step.staging(),
            outputs=Outputs(runtime, program.vocab_size, limits) if program.has_head else None,
            hidden=rows(max(1, program.output_size)),
            taps={part: rows(program.hidden_size) for part in program.taps},
            copies=runtime.pinned(COPIES_BYTES).view(np.int32),
            copies_memory=runtime.allocate(COPIES_BYTES),
        )


@dataclass
class Flight:
    """A ticket in flight."""

    place: int
    """Index of its memory."""
    num_rows: int
    selection: Selection | None
    end: Event | None = None
    """The end of its step; None while its edits or masks are missing."""
    extra: list[Memory] = field(default_factory=list)
    """Memory that is kept until the step has ended."""
    times: Stopwatch = field(default_factory=lambda: Stopwatch(is_on=False))
    """What the host did for the step."""
    marks: StepMarks = field(default_factory=lambda: StepMarks(None))
    """What the card does for it."""


class HiddenRows:
    """See `llmd.api.HiddenRef`."""

    def __init__(self, runtime: Runtime, rows: Float32, end: Event) -> None:
        self._runtime = runtime
        self._rows = rows
        self._end = end

    def host(self) -> Float32:
        reach(self._runtime, self._end)
        return self._rows


def reach(runtime: Runtime, end: Event) -> None:
    """Wait until the stream has reached a point.

    Raises:
        DeviceLostError: it took longer than `LONGEST_STEP_S`.
    """
    if not end.wait(LONGEST_STEP_S):
        raise runtime.lost(f"a step did not finish within {LONGEST_STEP_S:.0f} s")
