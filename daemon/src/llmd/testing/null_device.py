"""A device that implements the contract with simulated step times and computes nothing.

A step takes some seconds of the caller's clock (`null_timeline`). The logits of a row depend only on
its position (`null_rows`); edits and masks have no effect, except on a device that draws tokens. Violations
of the contract are refused, and submitted steps are recorded. A device has a memory of its own, in which it
counts weights, KV pools and step buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    INTEGER_FORMATS,
    KV_DTYPES,
    OP_KINDS,
    PLAIN_FORMATS,
    SCALED_FORMATS,
    DeviceError,
    DeviceInfo,
    DeviceLostError,
    HiddenRef,
    HostHidden,
    Instruction,
    KVDtype,
    LateEdits,
    LoadedWeights,
    MemoryBudgetError,
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
    step_buffer_bytes,
)
from llmd.api.byte_size import format_bytes
from llmd.api.candidates import OutputRows
from llmd.api.checks import check_hidden, check_late_edits, check_selection, check_step
from llmd.api.features import COMPUTED, DRAWS
from llmd.api.spans import Span
from llmd.api.step import Float32
from llmd.models.program_bytes import resident_bytes, stream_buffer_bytes
from llmd.testing.null_rows import NullRows, null_logits
from llmd.testing.null_timeline import NullRun, NullTimeline
from llmd.testing.selections import plain_selection

Clock = Callable[[], float]
Pause = Callable[[float], None]
StepSeconds = Callable[[Program, Step], float]
"""Returns how long a device takes for a step of a program."""


def _no_pause(_seconds: float) -> None:
    """Do not wait: for simulated clocks."""


class NullDevice:
    """See `llmd.api.Device`."""

    def __init__(
        self,
        clock: Clock,
        *,
        step_s: float | StepSeconds = 0.0,
        pause: Pause = _no_pause,
        name: str = "null",
        memory_bytes: int = 1 << 30,
        draws: bool = False,
        patterns: tuple[Pattern, ...] = (),
    ) -> None:
        """``pause`` waits for some seconds of the clock; without it, `NullStage.wait` returns at once.

        ``draws``: the device draws tokens, from edited and masked logits.
        """
        self.info = DeviceInfo(
            name=name,
            kind="null",
            score=1,
            memory_bytes=memory_bytes,
            formats=(*PLAIN_FORMATS, *SCALED_FORMATS, *INTEGER_FORMATS),
            kv_dtypes=KV_DTYPES,
            ops=OP_KINDS,
            patterns=patterns,
            row_exact=True,
            queues=True,
            description="keeps time, computes nothing",
            features=tuple(name for name in COMPUTED if draws or name != DRAWS),
            memory_id=name,
        )
        self.held_bytes = 0
        self.clock = clock
        self.step_s = step_s
        self.pause = pause

    def check(self, program: Program) -> list[Refusal]:
        return []

    def read_rate(self, budget_s: float) -> float:
        return 1e9

    def free_bytes(self) -> int:
        return self.info.memory_bytes - self.held_bytes

    def load(
        self,
        program: Program,
        tensors: TensorSource,
        progress: Progress,
        have: Sequence[LoadedWeights] = (),
    ) -> NullWeights:
        return NullWeights(self, program)

    def take(self, num_bytes: int) -> _Held:
        """Take memory until the result is freed.

        Raises:
            MemoryBudgetError: it is not free.
        """
        if num_bytes > self.free_bytes():
            raise MemoryBudgetError(
                f"{format_bytes(num_bytes)} do not fit the {format_bytes(self.free_bytes())} that are free",
                hint="lower --kv-memory, --slots or --max-ctx",
            )
        return _Held(self, num_bytes)

    def begin(self, earliest_s: float, seconds: float) -> float:
        """Return when layers begin that could at a time: then. Each stage has a device to itself."""
        return earliest_s

    def close(self) -> None:
        """Nothing is held."""


class _Held:
    """Memory of a device."""

    def __init__(self, device: NullDevice, num_bytes: int) -> None:
        device.held_bytes += num_bytes
        self._device = device
        self._num_bytes = num_bytes

    def free(self) -> None:
        """Give the memory back, once."""
        self._device.held_bytes -= self._num_bytes
        self._num_bytes = 0


class NullWeights:
    """See `llmd.api.LoadedWeights`."""

    def __init__(self, device: NullDevice, program: Program) -> None:
        self._device = device
        self._program = program
        self._held = device.take(resident_bytes(program))

    def kv_bytes(self, group: int, kv_dtype: KVDtype) -> int:
        return 1024 * len(self._program.groups[group].layers)

    def step_bytes(self, limits: StageLimits) -> int:
        return step_buffer_bytes(self._program, limits) + stream_buffer_bytes(self._program)

    def stage(self, blocks: Mapping[int, int], limits: StageLimits) -> NullStage:
        pools = sum(self.kv_bytes(group, limits.kv_dtype) * count for group, count in blocks.items())
        held = self._device.take(pools + self.step_bytes(limits))
        return NullStage(self._device, self._program, blocks, limits, held)

    def close(self) -> None:
        self._held.free()


class _Flight(msgspec.Struct):
    run: NullRun
    rows: int
    selection: Selection
    positions: NDArray[np.int32]  # of the output rows
    outputs: OutputRows | NullRows
    missing: list[str]  # methods that have yet to be called, in order
    launched: list[Span]  # on the host


class _NullHidden(msgspec.Struct, frozen=True):
    """Hidden states that a null stage returns at a time of its clock."""

    ready_at: float
    array: Float32
    wait_until: Callable[[float], None]

    def host(self) -> Float32:
        self.wait_until(self.ready_at)
        return self.array


class NullStage:
    """See `llmd.api.Stage`. A step begins once the stage before has returned its hidden states.

    ``submitted`` has (rows, position of each sequence's last row) for every step, ``ran`` the instructions of
    all steps.
    """

    def __init__(
        self,
        device: NullDevice,
        program: Program,
        blocks: Mapping[int, int],
        limits: StageLimits,
        held: _Held,
    ) -> None:
        self._device = device
        self._held = held
        self._program = program
        self._blocks = dict(blocks)
        self._limits = limits
        self._flights: dict[Ticket, _Flight] = {}
        self._timeline = NullTimeline(device.begin)
        self._next = 0
        self.submitted: list[tuple[int, tuple[int, ...]]] = []
        self.ran: list[Instruction] = []
        self.most_in_flight = 0

    @property
    def idle_s(self) -> float:
        """Seconds for which the device had no layers to run, between the first step and the last."""
        return self._timeline.idle_s

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        now = called = self._device.clock()
        check_step(self._program, self._blocks, self._limits, step)
        if selection is not None:
            check_selection(self._program, self._limits, step, selection)
            self._check_draws(selection)
        fed_from = self._fed_from(step)
        if len(self._flights) >= self._limits.tickets:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        if isinstance(hidden, _NullHidden):
            check_hidden(self._program, step, hidden.array)
            now = max(now, hidden.ready_at)
        elif hidden is not None:
            check_hidden(self._program, step, hidden.host())
        ticket = Ticket(self._next)
        self._next += 1
        selection = selection or _NOTHING
        missing = ["apply_edits"] if _any(selection.late) else []
        missing += ["apply_masks"] if _any(selection.masked) else []
        run = self._timeline.submit(now, self._seconds(step), fed_from, waits=bool(missing))
        positions = step.positions[selection.rows]
        outputs = self._outputs(positions, selection)
        launched = [Span("launch", "submit", called, self._device.clock())] if self._limits.spans else []
        self._flights[ticket] = _Flight(run, step.num_rows, selection, positions, outputs, missing, launched)
        self.most_in_flight = max(self.most_in_flight, len(self._flights))
        self.ran += self._program.instructions
        self.submitted.append((step.num_rows, tuple(step.positions[step.row_offsets[1:] - 1].tolist())))
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        flight = self._find(ticket)
        check_late_edits(self._program.vocab_size, flight.selection, edits)
        self._complete(flight, "apply_edits")
        flight.outputs.apply_edits(edits)

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        flight = self._find(ticket)
        masked = int(flight.selection.masked.sum())
        if len(masks) != masked:
            raise ValueError(f"{len(masks)} masks for {masked} masked rows")
        self._complete(flight, "apply_masks")
        flight.outputs.apply_masks(masks)

    def hidden(self, ticket: Ticket) -> HiddenRef:
        flight = self._find(ticket)
        assert flight.run.layers_end is not None, "only a single stage is fed with tokens"
        rows = np.zeros((flight.rows, self._program.output_size), np.float32)
        return _NullHidden(flight.run.layers_end, rows, self._wait_until)

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        if part not in self._program.taps:
            raise ValueError(f"part {part} is no tap of this stage")
        return HostHidden(np.zeros((self._find(ticket).rows, self._program.hidden_size), np.float32))

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        flight = self._find(ticket)
        if flight.missing:
            raise ValueError(f"rows have no candidates before {' and '.join(flight.missing)}")
        if flight.run.ready_at is None:
            raise ValueError("the step is fed from a ticket that waits for its edits or masks")
        left_s = flight.run.ready_at - self._device.clock()
        if left_s > timeout_s:
            del self._flights[ticket]
            raise DeviceLostError(
                f"the step did not finish within {timeout_s:g} s",
                devices=(self._device.info.name,),
                hint="see the device's driver log",
            )
        self._wait_until(flight.run.ready_at)
        return flight.outputs.result()

    def rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        flight = self._find(ticket)
        if isinstance(flight.outputs, OutputRows):
            return flight.outputs.edited[outputs]
        return null_logits(flight.positions[outputs], self._program.vocab_size)

    def raw_rows(self, ticket: Ticket, outputs: NDArray[np.int32]) -> NDArray[np.float32]:
        return null_logits(self._find(ticket).positions[outputs], self._program.vocab_size)

    def read_blocks(self, group: int, blocks: NDArray[np.int32]) -> NDArray[np.uint8]:
        raise NotImplementedError("it keeps no blocks")

    def write_blocks(self, group: int, blocks: NDArray[np.int32], contents: NDArray[np.uint8]) -> None:
        raise NotImplementedError("it keeps no blocks")

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        flight = self._find(ticket)
        end_s = flight.run.layers_end
        assert end_s is not None, "the step is done"
        layers_s = end_s - flight.run.layers_s, end_s
        copied = [Span("weights", "streamed parts", *layers_s)] if self._program.streamed else []
        return (*flight.launched, *copied, Span("device", "layers", *layers_s))

    def release(self, ticket: Ticket) -> None:
        self._timeline.complete(self._find(ticket).run, self._device.clock())
        del self._flights[ticket]

    def close(self) -> None:
        self._flights.clear()
        self._held.free()

    def _wait_until(self, at: float) -> None:
        left_s = at - self._device.clock()
        if left_s > 0:
            self._device.pause(left_s)

    def _seconds(self, step: Step) -> float:
        step_s = self._device.step_s
        return step_s(self._program, step) if callable(step_s) else step_s

    def _check_draws(self, selection: Selection) -> None:
        if DRAWS not in self._device.info.features and (selection.draws or selection.late is not None):
            raise ValueError("a selection has draws or late rows, which the device does not claim")

    def _fed_from(self, step: Step) -> NullRun | None:
        if step.feed is None:
            return None
        if step.feed not in self._flights:
            raise ValueError(f"the step is fed from ticket {step.feed}, which is not in flight")
        flight = self._flights[step.feed]
        if -int(step.token_ids.min()) > len(flight.positions):
            raise ValueError(f"the step is fed from more rows than the {len(flight.positions)} of its ticket")
        return flight.run

    def _outputs(self, positions: NDArray[np.int32], selection: Selection) -> OutputRows | NullRows:
        vocab, num_candidates = self._program.vocab_size, self._limits.num_candidates
        changes = selection.edit_ids.size or _any(selection.late) or _any(selection.masked)
        if DRAWS in self._device.info.features and changes:
            return OutputRows(null_logits(positions, vocab), selection, num_candidates)
        return NullRows(positions, selection, num_candidates, vocab)

    def _complete(self, flight: _Flight, method: str) -> None:
        """Note that a method was called that completes output rows."""
        if flight.missing[:1] != [method]:
            raise ValueError(f"{method} is not expected here; missing: {flight.missing}")
        del flight.missing[0]
        if not flight.missing:
            self._timeline.complete(flight.run, self._device.clock())

    def _find(self, ticket: Ticket) -> _Flight:
        if ticket not in self._flights:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._flights[ticket]


def _any(flags: NDArray[np.bool_] | None) -> bool:
    return flags is not None and bool(flags.any())


_NOTHING = plain_selection([])
