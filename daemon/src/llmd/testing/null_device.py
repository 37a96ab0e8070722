"""A device that implements the contract with simulated step times and computes nothing.

A step takes ``step_s`` seconds of the caller's clock. The logits of a row depend only on its position: the
token ``(STRIDE * position + j) % vocab`` has the logit ``-j``; edits and masks have no effect. Violations of
the contract are refused, and submitted steps are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    INTEGER_FORMATS,
    KV_DTYPES,
    OP_KINDS,
    PLAIN_FORMATS,
    DeviceError,
    DeviceInfo,
    DeviceProfile,
    HiddenRef,
    Instruction,
    KVDtype,
    Pattern,
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
from llmd.api.step import Float32

Clock = Callable[[], float]
Pause = Callable[[float], None]
STRIDE = 7919


def _no_pause(_seconds: float) -> None:
    """Do not wait: for simulated clocks."""


class NullDevice:
    """See `llmd.api.Device`."""

    def __init__(
        self,
        clock: Clock,
        *,
        step_s: float = 0.0,
        pause: Pause = _no_pause,
        name: str = "null",
        memory_bytes: int = 1 << 30,
        patterns: tuple[Pattern, ...] = (),
    ) -> None:
        """``pause`` waits for some seconds of the clock; without it, `NullStage.wait` returns at once."""
        self.info = DeviceInfo(
            name=name,
            kind="null",
            score=1,
            memory_bytes=memory_bytes,
            formats=(*PLAIN_FORMATS, *INTEGER_FORMATS),
            kv_dtypes=KV_DTYPES,
            ops=OP_KINDS,
            patterns=patterns,
            row_exact=True,
            queues=True,
            description="keeps time, computes nothing",
        )
        self.clock = clock
        self.step_s = step_s
        self.pause = pause

    def check(self, program: Program) -> list[Refusal]:
        return []

    def benchmark(self, budget_s: float) -> DeviceProfile:
        return DeviceProfile(1e9, {"f32": 1e9}, 1e9)

    def load(self, program: Program, tensors: TensorSource, progress: Progress) -> NullWeights:
        return NullWeights(self, program)

    def close(self) -> None:
        """Nothing is held."""


class NullWeights:
    """See `llmd.api.LoadedWeights`."""

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
    outputs: NDArray[np.int32]  # positions of the output rows
    result: StepResult
    waiting_for_masks: int


class _NullHidden(msgspec.Struct, frozen=True):
    """Hidden states that a null stage returns at a time of its clock."""

    ready_at: float
    array: Float32

    def host(self) -> Float32:
        return self.array


class NullStage:
    """See `llmd.api.Stage`. A step begins once the stage before has returned its hidden states.

    ``submitted`` has (rows, position of each sequence's last row) for every step, ``ran`` the instructions of
    all steps. ``idle_s`` is the time between the end of a step and the submission of the next.
    """

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
        self.ran: list[Instruction] = []
        self.most_in_flight = 0
        self.idle_s = 0.0
        width = min(limits.num_candidates, program.vocab_size)
        self._candidates = np.arange(width, dtype=np.int32)

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        now = self._device.clock()
        check_step(self._program, self._blocks, self._limits, step)
        if selection is not None:
            check_selection(self._program, self._limits, step, selection)
        if step.feed is not None and self._program.hidden_in is None and step.feed not in self._flights:
            raise ValueError(f"the step is fed from ticket {step.feed}, which is not in flight")
        if len(self._flights) >= self._limits.tickets:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        if hidden is not None:
            check_hidden(self._program, step, hidden.host())
        self._start(max(now, hidden.ready_at) if isinstance(hidden, _NullHidden) else now)
        ticket = Ticket(self._next)
        self._next += 1
        selection = selection or _NOTHING
        masked = int(selection.masked.sum())
        outputs = step.positions[selection.rows]
        result = self._result(outputs, selection)
        self._flights[ticket] = _Flight(self._busy_until, step.num_rows, outputs, result, masked)
        self.most_in_flight = max(self.most_in_flight, len(self._flights))
        self.ran += self._program.instructions
        self.submitted.append((step.num_rows, tuple(step.positions[step.row_offsets[1:] - 1].tolist())))
        return ticket

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        flight = self._find(ticket)
        if len(masks) != flight.waiting_for_masks:
            raise ValueError(f"{len(masks)} masks for {flight.waiting_for_masks} masked rows")
        flight.waiting_for_masks = 0

    def hidden(self, ticket: Ticket) -> HiddenRef:
        flight = self._find(ticket)
        return _NullHidden(flight.ready_at, np.zeros((flight.rows, self._program.output_size), np.float32))

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        if part not in self._program.taps:
            raise ValueError(f"part {part} is no tap of this stage")
        flight = self._find(ticket)
        return _NullHidden(flight.ready_at, np.zeros((flight.rows, self._program.hidden_size), np.float32))

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        flight = self._find(ticket)
        if flight.waiting_for_masks:
            raise ValueError("masked rows have no candidates before apply_masks")
        left_s = flight.ready_at - self._device.clock()
        if left_s > timeout_s:
            del self._flights[ticket]
            raise DeviceError(
                f"the step did not finish within {timeout_s} s", hint="see the device's driver log"
            )
        if left_s > 0:
            self._device.pause(left_s)
        return flight.result

    def rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        vocab = self._program.vocab_size
        best = STRIDE * self._find(ticket).outputs[outputs].astype(np.int64)
        logits: NDArray[np.float32] = -((np.arange(vocab) - best[:, None]) % vocab).astype(np.float32)
        return logits

    def raw_rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        return self.rows(ticket, outputs)

    def read_blocks(self, group: int, blocks: NDArray[np.int32]) -> NDArray[np.uint8]:
        raise NotImplementedError("it keeps no blocks")

    def write_blocks(self, group: int, blocks: NDArray[np.int32], contents: NDArray[np.uint8]) -> None:
        raise NotImplementedError("it keeps no blocks")

    def release(self, ticket: Ticket) -> None:
        self._find(ticket)
        del self._flights[ticket]

    def close(self) -> None:
        self._flights.clear()

    def _start(self, now: float) -> None:
        if self.submitted:
            self.idle_s += max(0.0, now - self._busy_until)
        self._busy_until = max(self._busy_until, now) + self._device.step_s

    def _result(self, positions: NDArray[np.int32], selection: Selection) -> StepResult:
        count, vocab = len(positions), self._program.vocab_size
        ids = ((STRIDE * positions.astype(np.int64)[:, None] + self._candidates) % vocab).astype(np.int32)
        logits = np.broadcast_to(-self._candidates.astype(np.float32), ids.shape)
        top = min(selection.raw_top, ids.shape[1])
        return StepResult(
            ids=ids,
            edited=logits,
            raw=logits,
            raw_logsumexp=_logsumexp(np.ones(count, np.float32), vocab),
            edited_logsumexp=_logsumexp(selection.temperatures, vocab),
            edited_entropy=_entropy(selection.temperatures, vocab),
            edited_deviation=np.full(count, np.sqrt((vocab**2 - 1) / 12), np.float32),
            num_allowed=np.full(count, vocab, np.int32),
            target_raw=np.full(count, np.nan, np.float32),
            top_ids=ids[:, :top],
            top_raw=logits[:, :top],
        )

    def _find(self, ticket: Ticket) -> _Flight:
        if ticket not in self._flights:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._flights[ticket]


def _logsumexp(temperatures: NDArray[np.float32], vocab: int) -> NDArray[np.float32]:
    """Return the log-sum-exp of the logits 0, -1, … of a row, a geometric series."""
    ratio = np.exp(-1.0 / temperatures.astype(np.float64))
    series: NDArray[np.float32] = np.log((1 - ratio**vocab) / (1 - ratio)).astype(np.float32)
    return series


def _entropy(temperatures: NDArray[np.float32], vocab: int) -> NDArray[np.float32]:
    """Return the entropy of a row, from its log-sum-exp and a truncated geometric mean."""
    ratio = np.exp(-1.0 / temperatures.astype(np.float64))
    mean = ratio / (1 - ratio) - vocab * ratio**vocab / (1 - ratio**vocab)
    entropy: NDArray[np.float32] = (_logsumexp(temperatures, vocab) + mean / temperatures).astype(np.float32)
    return entropy


_NONE = np.zeros(0, np.int32)
_NOTHING = Selection(
    rows=_NONE,
    edit_offsets=np.zeros(1, np.int32),
    edit_ids=_NONE,
    edit_factors=_NONE.astype(np.float32),
    edit_biases=_NONE.astype(np.float32),
    masked=_NONE.astype(np.bool_),
    temperatures=_NONE.astype(np.float32),
    targets=_NONE,
)
