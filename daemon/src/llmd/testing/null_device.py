"""A device that keeps time and the contract, and computes nothing.

It answers every output row with the same fixed candidates after ``step_s`` seconds of a clock that the test
passes in, refuses what the contract forbids, and records what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    OP_KINDS,
    DeviceError,
    DeviceInfo,
    DeviceProfile,
    HiddenRef,
    HostHidden,
    KVDtype,
    Program,
    Progress,
    Refusal,
    Selection,
    StageLimits,
    Step,
    StepResult,
    TensorSource,
    Ticket,
)
from llmd.api.checks import check_hidden, check_selection, check_step

Clock = Callable[[], float]


class NullDevice:
    """See `llmd.api.Device`."""

    def __init__(
        self, clock: Clock, *, step_s: float = 0.0, name: str = "null", memory_bytes: int = 1 << 30
    ) -> None:
        self.info = DeviceInfo(
            name=name,
            kind="null",
            score=1,
            memory_bytes=memory_bytes,
            formats=("f32", "f16", "bf16", "q8"),
            kv_dtypes=("f32", "f16"),
            ops=OP_KINDS,
            row_exact=True,
            description="keeps time, computes nothing",
        )
        self.clock = clock
        self.step_s = step_s

    def check(self, program: Program) -> list[Refusal]:
        return []

    def benchmark(self, budget_s: float) -> DeviceProfile:
        return DeviceProfile(1e9, {"f32": 1e9}, 1e9)

    def load(self, program: Program, tensors: TensorSource, progress: Progress) -> NullParts:
        return NullParts(self, program)

    def close(self) -> None:
        """Nothing is held."""


class NullParts:
    """See `llmd.api.LoadedParts`."""

    def __init__(self, device: NullDevice, program: Program) -> None:
        self._device = device
        self._program = program

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return 1024 * len(self._program.groups[group].layers)

    def free_bytes(self) -> int:
        return self._device.info.memory_bytes

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> NullStage:
        return NullStage(self._device, self._program, blocks, limits)

    def close(self) -> None:
        """Nothing is held."""


class _Flight(msgspec.Struct):
    ready_at: float
    rows: int
    outputs: int
    waiting_for_masks: int


class NullStage:
    """See `llmd.api.Stage`. ``submitted`` holds (rows, positions of each sequence's last row) of every step."""

    def __init__(
        self, device: NullDevice, program: Program, blocks: Mapping[int, int], limits: StageLimits
    ) -> None:
        self._device = device
        self._program = program
        self._blocks = dict(blocks)
        self._limits = limits
        self._flights: dict[Ticket, _Flight] = {}
        self._busy_until = 0.0
        self._next = 0
        self.submitted: list[tuple[int, tuple[int, ...]]] = []
        self.most_in_flight = 0

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        check_step(self._program, self._blocks, self._limits, step)
        if selection is not None:
            check_selection(self._program, self._limits, step, selection)
        if step.feed is not None and self._program.hidden_in is None and step.feed not in self._flights:
            raise ValueError(f"ticket {step.feed} is fed from, but not in flight")
        if len(self._flights) >= self._limits.tickets:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        if hidden is not None:
            check_hidden(self._program, step, hidden.host())
        self._busy_until = max(self._busy_until, self._device.clock()) + self._device.step_s
        ticket = Ticket(self._next)
        self._next += 1
        masked = 0 if selection is None else int(selection.masked.sum())
        outputs = 0 if selection is None else selection.num_rows
        self._flights[ticket] = _Flight(self._busy_until, step.num_rows, outputs, masked)
        self.most_in_flight = max(self.most_in_flight, len(self._flights))
        self.submitted.append((step.num_rows, tuple(step.positions[step.row_offsets[1:] - 1].tolist())))
        return ticket

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        flight = self._find(ticket)
        if len(masks) != flight.waiting_for_masks:
            raise ValueError(f"{len(masks)} masks for {flight.waiting_for_masks} masked rows")
        flight.waiting_for_masks = 0

    def hidden(self, ticket: Ticket) -> HiddenRef:
        return HostHidden(np.zeros((self._find(ticket).rows, self._program.hidden_size), np.float32))

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        flight = self._find(ticket)
        if flight.waiting_for_masks:
            raise ValueError("masked rows have no candidates before apply_masks")
        if flight.ready_at - self._device.clock() > timeout_s:
            del self._flights[ticket]
            raise DeviceError(
                f"the step did not finish within {timeout_s} s", hint="see the device's driver log"
            )
        count, kept = flight.outputs, min(self._limits.num_candidates, self._program.vocab_size)
        logits = np.tile(-np.arange(kept, dtype=np.float32), (count, 1))
        return StepResult(
            ids=np.tile(np.arange(kept, dtype=np.int32), (count, 1)),
            edited=logits,
            raw=logits,
            raw_logsumexp=np.full(count, 0.5, np.float32),
            edited_logsumexp=np.full(count, 0.5, np.float32),
            target_raw=np.full(count, np.nan, np.float32),
            top_ids=np.zeros((count, 0), np.int32),
            top_raw=np.zeros((count, 0), np.float32),
        )

    def rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        self._find(ticket)
        return np.tile(-np.arange(self._program.vocab_size, dtype=np.float32), (len(outputs), 1))

    def raw_rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        return self.rows(ticket, outputs)

    def release(self, ticket: Ticket) -> None:
        self._find(ticket)
        del self._flights[ticket]

    def close(self) -> None:
        self._flights.clear()

    def _find(self, ticket: Ticket) -> _Flight:
        if ticket not in self._flights:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._flights[ticket]
