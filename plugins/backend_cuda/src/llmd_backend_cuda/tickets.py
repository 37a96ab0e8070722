"""What each ticket of a stage has for itself: pinned memory, outputs, and the point where its step ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from llmd.api import HostHidden, Program, Selection, StageLimits
from llmd.api.spans import Stopwatch
from llmd.api.step import Float32, Int32
from llmd_backend_cuda.outputs import Outputs
from llmd_backend_cuda.runtime import Memory, Runtime
from llmd_backend_cuda.step_end import StepEnd
from llmd_backend_cuda.step_marks import StepMarks
from llmd_backend_cuda.step_memory import StepMemory

LONGEST_CLOSE_S = 30.0
"""How long a stage that closes waits for cards that may wait for a lost one."""

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
    handed: Memory
    """Device memory ``[max_rows, output_size]`` for hidden states that another card takes."""
    stays_on_card: bool = False
    """The next stage takes hidden states from ``handed``."""
    is_downloaded: bool = True
    """The hidden states of the last step are in ``hidden``, not in ``handed``."""
    end: StepEnd | None = None
    """The end of the last step that used it."""
    reader: StepEnd | None = None
    """The end of the copy of its hidden states to the next stage."""

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
            handed=runtime.allocate(handed_bytes(program, limits)),
        )

    def reuse(self) -> None:
        """Wait until nothing of an earlier step, which may have been released early, uses it.

        Raises:
            DeviceLostError: a card is gone.
        """
        for end in (self.end, self.reader):
            if end is not None:
                end.reach()
        self.reader = None

    def hand_on(self, runtime: Runtime, memory: Memory, num_rows: int) -> None:
        """Queue the copy of hidden states to where the next stage takes them."""
        rows = self.hidden[:num_rows]
        self.is_downloaded = not self.stays_on_card
        if self.is_downloaded:
            runtime.download(rows, memory, 0)
        else:
            runtime.copy(self.handed, memory, rows.nbytes, runtime)

    def settle(self) -> None:
        """Wait, with a limit, for cards that share a step with another one, before memory is freed."""
        for end in (self.end, self.reader):
            if end is not None and end.before is not None:
                end.settle(LONGEST_CLOSE_S)


def handed_bytes(program: Program, limits: StageLimits) -> int:
    """Return the bytes of device memory of a ticket for hidden states that another card takes."""
    return 0 if program.hidden_out is None else 4 * limits.max_rows * program.output_size


@dataclass
class Flight:
    """A ticket in flight."""

    place: int
    """Index of its memory."""
    num_rows: int
    selection: Selection | None
    before: StepEnd | None = None
    """The step of a card whose hidden states it takes."""
    end: StepEnd | None = None
    """The end of its step; None while its edits or masks are missing."""
    extra: list[Memory] = field(default_factory=list)
    """Memory that is kept until the step has ended."""
    times: Stopwatch = field(default_factory=lambda: Stopwatch(is_on=False))
    """What the host did for the step."""
    marks: StepMarks = field(default_factory=lambda: StepMarks(None))
    """What the card does for it."""


class HiddenRows:
    """See `llmd.api.HiddenRef`."""

    def __init__(self, rows: Float32, end: StepEnd) -> None:
        self._rows = rows
        self._end = end

    def host(self) -> Float32:
        self._end.reach()
        return self._rows


class CardRows(HiddenRows):
    """The hidden states that a stage hands on, which another stage may take without the host."""

    def __init__(self, ticket: TicketMemory, num_rows: int, end: StepEnd) -> None:
        super().__init__(ticket.hidden[:num_rows], end)
        self._ticket = ticket

    def host(self) -> Float32:
        rows = super().host()
        if not self._ticket.is_downloaded:
            self._end.runtime.download(rows, self._ticket.handed, 0)
            self._end.runtime.synchronize()
        return rows

    @property
    def shape(self) -> HostHidden:
        """Rows of the same shape, for checks; their values may not be there yet."""
        return HostHidden(self._rows)

    def copy_to(self, runtime: Runtime, memory: Memory, marks: StepMarks) -> StepEnd:
        """Queue a copy to the memory of a card, and return the end of the step that it waits for.

        A card that cannot read the other one's memory copies from pinned memory of the host. ``marks`` notes
        where the wait ends.

        Raises:
            DeviceLostError: one of the cards is gone.
        """
        ticket, owner = self._ticket, self._end.runtime
        self._end.check()
        if runtime is not owner:
            runtime.wait_for(self._end.event)
        marks.start()
        if ticket.is_downloaded:
            runtime.upload(memory, 0, self._rows)
        else:
            runtime.copy(memory, ticket.handed, self._rows.nbytes, owner)
        ticket.stays_on_card = runtime.reads(owner)
        ticket.reader = StepEnd(runtime, runtime.record(), self._end)
        return self._end
