"""The stage of a card: steps are queued on its stream, small ones as captured graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api import HiddenRef, LateEdits, Program, Selection, StageLimits, Step, StepResult, Ticket
from llmd.api.adapter_items import has_adapters
from llmd.api.checks import check_submit
from llmd.api.errors import DeviceError, DeviceMemoryError, LlmdError, MemoryBudgetError
from llmd.api.kernel_use import KernelUse
from llmd.api.output_checks import check_outputs
from llmd.api.spans import Span, Stopwatch
from llmd.api.step import Float32, Int32
from llmd_backend_cuda.buckets import LARGEST_GRAPH, bucket_of
from llmd_backend_cuda.expert_cache import ExpertSteps
from llmd_backend_cuda.kernel_use import kernel_use
from llmd_backend_cuda.loaded import PlacedWeights
from llmd_backend_cuda.outputs import Outputs
from llmd_backend_cuda.runtime import Graph, Launch, Memory, Runtime
from llmd_backend_cuda.shapes import attention_shapes
from llmd_backend_cuda.stage_memory import StageMemory
from llmd_backend_cuda.step_end import StepEnd
from llmd_backend_cuda.step_launches import StepLaunches
from llmd_backend_cuda.step_marks import StepMarks, StreamClock
from llmd_backend_cuda.tickets import CardRows, Flight, HiddenRows, TicketMemory
from llmd_backend_cuda.tuning import Tuner
from llmd_backend_cuda.weight_stream import WeightStream, part_name

_GraphKey = tuple[int, int, int, bool, int]
"""Ticket, bucket, output rows, whether rows have adapters, and number of the segment."""


class CudaStage:
    """See `llmd.api.Stage`."""

    def __init__(
        self,
        runtime: Runtime,
        program: Program,
        weights: PlacedWeights,
        blocks: Mapping[int, int],
        limits: StageLimits,
        kept: object = None,
        stream: WeightStream | None = None,
        tuner: Tuner | None = None,
        experts: ExpertSteps | None = None,
    ) -> None:
        """Allocate everything. ``kept`` owns the memory of the weights; the stage keeps it until it closes.

        ``stream`` has the weights of streamed parts. ``tuner`` finds the fastest variants of products; None:
        those for an H100. ``experts`` has those that need not be on the card.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        self._kept = kept
        self._experts = experts
        self._stream = stream
        self._runtime = runtime
        self._program = program
        self._limits = limits
        self._blocks = dict(blocks)
        self._memory = StageMemory(runtime, program, blocks, limits, attention_shapes(program))
        self._tickets = [
            TicketMemory.allocate(runtime, program, limits, self._memory.step) for _ in range(limits.tickets)
        ]
        self._graphs: dict[_GraphKey, Graph | None] = {}
        outputs = [ticket.outputs for ticket in self._tickets]
        streamed = () if stream is None else stream.parts
        self._launches = StepLaunches(self._memory, weights, outputs, streamed, tuner)
        self._copy_launches(0)  # compiles their kernels
        self._free = list(range(limits.tickets))
        self._flights: dict[Ticket, Flight] = {}
        self._next = 0
        self._is_closed = False
        runtime.synchronize()
        self._clock = StreamClock(runtime) if limits.spans else None

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        self._check_open()
        if self._clock is not None and not self._flights:
            self._clock.refresh()
        times = Stopwatch(is_on=self._clock is not None)
        given = hidden.shape if isinstance(hidden, CardRows) else hidden
        check_submit(self._program, self._blocks, self._limits, step, given, selection)
        fed_from = None if step.feed is None else self._complete(step.feed)[0]
        if not self._free:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        place = self._free[-1]
        marks = StepMarks(None if self._clock is None else self._runtime)
        flight = Flight(place, step.num_rows, selection, times=times, marks=marks)
        try:
            self._queue(flight, step, hidden, fed_from)
        except LlmdError as error:
            self._tickets[place].end = self._end(flight)  # the device may still read pinned memory
            if isinstance(error, MemoryBudgetError):
                raise _too_little_memory(error) from error
            raise
        self._free.pop()
        ticket = Ticket(self._next)
        self._next += 1
        self._flights[ticket] = flight
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        flight, _ = self._selected(ticket)
        outputs = self._outputs(flight.place)
        flight.times.start()
        flight.marks.start()
        try:
            outputs.apply_edits(edits)
        except MemoryBudgetError as error:
            raise _too_little_memory(error) from error
        self._completed(flight, "edits")

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        flight, _ = self._selected(ticket)
        flight.times.start()
        flight.marks.start()
        self._outputs(flight.place).apply_masks(masks)
        self._completed(flight, "masks")

    def hidden(self, ticket: Ticket) -> HiddenRef:
        if self._program.has_head:
            raise ValueError("a stage that ends with the head has no hidden states to hand on")
        flight = self._find(ticket)
        assert flight.end is not None, "a step without a selection ends when it is submitted"
        return CardRows(self._tickets[flight.place], flight.num_rows, flight.end)

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        flight = self._find(ticket)
        taps = self._tickets[flight.place].taps
        if part not in taps:
            raise ValueError(f"part {part} is no tap of this stage")
        if flight.end is None:
            raise ValueError("taps can be read once all edits and masks are applied")
        return HiddenRows(taps[part][: flight.num_rows], flight.end)

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        flight, _ = self._selected(ticket)
        outputs = self._outputs(flight.place)
        outputs.check_complete()
        assert flight.end is not None, "the outputs are complete"
        try:
            flight.end.reach(timeout_s)
        except DeviceError:
            self.release(ticket)
            raise
        return outputs.result()

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        flight, selection = self._complete(ticket)
        check_outputs(selection, outputs)
        return self._outputs(flight.place).edited_rows(outputs)

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        flight, selection = self._selected(ticket)
        check_outputs(selection, outputs)
        return self._outputs(flight.place).raw_rows(outputs)

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        flight = self._find(ticket)
        assert self._clock is not None, "the stage was made without spans"
        return (*flight.times.spans, *flight.marks.spans(self._clock))

    def kernels(self) -> KernelUse:
        return kernel_use(list(self._graphs.values()), streams=self._stream is not None)

    def release(self, ticket: Ticket) -> None:
        flight = self._flights.pop(ticket, None)
        if flight is None:
            raise ValueError(f"ticket {ticket} is not in flight")
        self._free.append(flight.place)

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        self._check_group(group)
        return self._memory.pools[group].read_blocks(blocks)

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        self._check_group(group)
        self._memory.pools[group].write_blocks(blocks, contents)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for ticket in self._tickets:
            ticket.settle()
        self._graphs.clear()
        self._flights.clear()
        self._tickets.clear()
        self._free.clear()
        self._stream = self._experts = None
        del self._launches, self._memory, self._kept

    def _queue(self, flight: Flight, step: Step, hidden: HiddenRef | None, fed_from: Flight | None) -> None:
        """Queue everything of a step up to its results, or up to its late edits and masks."""
        ticket, selection = self._tickets[flight.place], flight.selection
        flight.marks.start()
        ticket.reuse()
        if self._experts is not None:
            self._experts.begin(flight.place)
        bucket = bucket_of(step.num_rows, self._limits.max_rows)
        tokens = 0 if fed_from is None else self._outputs(fed_from.place).tokens_pointer
        self._memory.step.upload(ticket.staging, bucket, step, selection, tokens)
        self._copy_blocks(flight, step)
        if hidden is not None:
            assert self._program.hidden_in is not None, "checked"
            flight.marks.stop("copy", "inputs")
            self._take(flight, hidden, self._memory.slots[self._program.hidden_in])
        if selection is not None:
            self._outputs(flight.place).upload(selection)
        flight.marks.stop("copy", "inputs")
        num_outputs = 0 if selection is None else selection.num_rows
        self._run(flight, bucket, num_outputs, adapted=has_adapters(self._program, step))
        if self._experts is not None:
            self._experts.end(flight.place)
        self._download_rows(flight)
        if selection is None:
            flight.marks.stop("copy", "hidden states")
            flight.end = ticket.end = self._end(flight)
        else:
            self._end_if_complete(flight)
        flight.times.stop("launch", "submit")

    def _run(self, flight: Flight, bucket: int, num_outputs: int, *, adapted: bool) -> None:
        """Run the instructions, the head, and what follows it for rows that wait for nothing.

        Streamed parts run without graphs: to copy their weights takes hundreds of times as long as to launch
        their kernels.
        """
        outputs = bucket_of(num_outputs, self._limits.max_outputs)
        is_small = bucket <= LARGEST_GRAPH and outputs <= LARGEST_GRAPH
        key = (flight.place, bucket, outputs, adapted)
        if self._stream is not None:
            self._stream.begin(flight.marks)
        segments = self._launches.segments(flight.place, bucket, outputs, adapted=adapted)
        for number, segment in enumerate(segments):
            name = "layers" if segment.part is None else part_name(segment.part)
            if segment is segments[-1] and flight.selection is not None:
                name += ", candidates"
            if segment.part is not None:
                self._run_streamed(flight, segment.part, segment.launches, name)
                continue
            if is_small:
                self._run_graph((*key, number), segment.launches)
            else:
                self._launch(segment.launches)
            flight.marks.stop("device", name)

    def _run_streamed(self, flight: Flight, part: int, launches: Iterable[Launch], name: str) -> None:
        assert self._stream is not None, "a part is streamed"
        with self._stream.reading(part, flight.marks):
            flight.marks.start()
            self._launch(launches)
            flight.marks.stop("device", name)

    def _run_graph(self, key: _GraphKey, launches: Iterable[Launch]) -> None:
        if key not in self._graphs:
            self._graphs[key] = self._capture(launches)
        graph = self._graphs[key]
        if graph is None:
            self._launch(launches)
        else:
            graph.launch()

    def _capture(self, launches: Iterable[Launch]) -> Graph | None:
        """Return a graph of launches; None if the driver has no memory for it: launches need none."""
        try:
            return self._runtime.capture(lambda: self._launch(launches))
        except (DeviceMemoryError, MemoryBudgetError):
            return None

    def _launch(self, launches: Iterable[Launch]) -> None:
        for launch in launches:
            self._runtime.launch(launch)

    def _copy_blocks(self, flight: Flight, step: Step) -> None:
        if not len(step.copies):
            return
        packed = np.concatenate([np.array([len(step.copies)], np.int32), step.copies.reshape(-1)])
        ticket = self._tickets[flight.place]
        memory, source = ticket.copies_memory, ticket.copies[: packed.size]
        if packed.size <= ticket.copies.size:
            source[:] = packed
        else:
            memory, source = self._runtime.allocate(packed.nbytes), packed
            flight.extra.append(memory)
        self._runtime.upload(memory, 0, source)
        self._launch(self._copy_launches(memory.pointer))

    def _copy_launches(self, copies: int) -> list[Launch]:
        """Return the launches that copy blocks; ``copies`` is the address of their number and of them."""
        return [pool.copy_launch(copies, copies + 4) for pool in self._memory.pools.values()]

    def _take(self, flight: Flight, hidden: HiddenRef, memory: Memory) -> None:
        """Copy the hidden states of the stage before; only those that are not on a card are waited for."""
        if isinstance(hidden, CardRows):
            flight.before = hidden.copy_to(self._runtime, memory, flight.marks)
        else:
            rows = hidden.host()
            flight.marks.start()
            self._runtime.upload(memory, 0, rows)

    def _end(self, flight: Flight) -> StepEnd:
        return StepEnd(self._runtime, self._runtime.record(), flight.before)

    def _download_rows(self, flight: Flight) -> None:
        """Begin to copy the rows that leave the stage."""
        program, ticket, count = self._program, self._tickets[flight.place], flight.num_rows
        if program.hidden_out is not None:
            ticket.hand_on(self._runtime, self._memory.slots[program.hidden_out], count)
        for part, slot in zip(program.taps, program.tap_slots, strict=True):
            self._runtime.download(ticket.taps[part][:count], self._memory.slots[slot], 0)

    def _completed(self, flight: Flight, what: str) -> None:
        """Go on after edits or masks were queued."""
        flight.marks.stop("device", what)
        self._end_if_complete(flight)
        flight.times.stop("launch", what)

    def _end_if_complete(self, flight: Flight) -> None:
        outputs = self._outputs(flight.place)
        if outputs.is_complete:
            outputs.download()
            flight.marks.stop("copy", "results")
            flight.end = self._end(flight)
        self._tickets[flight.place].end = flight.end or self._end(flight)

    def _outputs(self, place: int) -> Outputs:
        outputs = self._tickets[place].outputs
        if outputs is None:
            raise ValueError("a stage without the head has no candidates")
        return outputs

    def _find(self, ticket: Ticket) -> Flight:
        if ticket not in self._flights:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._flights[ticket]

    def _selected(self, ticket: Ticket) -> tuple[Flight, Selection]:
        flight = self._find(ticket)
        if flight.selection is None:
            raise ValueError("a stage without the head has no candidates")
        return flight, flight.selection

    def _complete(self, ticket: Ticket) -> tuple[Flight, Selection]:
        flight, selection = self._selected(ticket)
        self._outputs(flight.place).check_complete()
        return flight, selection

    def _check_group(self, group: int) -> None:
        self._check_open()
        if group not in self._memory.pools:
            raise ValueError(f"this stage keeps nothing for KV group {group}")

    def _check_open(self) -> None:
        if self._is_closed:
            raise ValueError("this stage is closed")


def _too_little_memory(error: MemoryBudgetError) -> DeviceMemoryError:
    """Return the error of a step for which memory is short: the engine then takes a smaller KV pool."""
    return DeviceMemoryError(error.message, hint="lower --kv-memory, --slots or --max-ctx")
