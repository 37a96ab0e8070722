"""The stage of a device: steps are submitted as recordings, which are made once for each size of a step."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api import HiddenRef, LateEdits, Program, Selection, StageLimits, Step, StepResult, Ticket
from llmd.api.adapter_items import applies_adapters, has_adapters
from llmd.api.checks import check_submit
from llmd.api.errors import DeviceError, DeviceLostError, DeviceMemoryError, MemoryBudgetError
from llmd.api.kernel_use import KernelUse
from llmd.api.output_checks import check_outputs
from llmd.api.spans import Span, Stopwatch
from llmd.api.step import Float32, Int32
from llmd_backend_vulkan.buckets import bucket_of
from llmd_backend_vulkan.commands import Dispatch, Segment
from llmd_backend_vulkan.context import Context, stride_of
from llmd_backend_vulkan.kernel_use import kernel_use
from llmd_backend_vulkan.memory import Arena, copy, copy_step
from llmd_backend_vulkan.ops.attention import MOST_SPANS, SPLIT_ROWS, scratch_words, spans_of
from llmd_backend_vulkan.outputs import Outputs
from llmd_backend_vulkan.programs import Phase, body_phases, head_phases
from llmd_backend_vulkan.runtime import Recording
from llmd_backend_vulkan.stage_memory import StageMemory
from llmd_backend_vulkan.step_clock import StepClock
from llmd_backend_vulkan.step_memory import last_seen, pack_step
from llmd_backend_vulkan.streaming import Placed, WeightStream
from llmd_backend_vulkan.tickets import Flight, HiddenRows, TicketMemory
from llmd_backend_vulkan.tiles import distinct_tiles


class VulkanStage:
    """See `llmd.api.Stage`."""

    def __init__(
        self,
        arena: Arena,
        program: Program,
        weights: Placed,
        blocks: Mapping[int, int],
        limits: StageLimits,
    ) -> None:
        """Allocate everything. ``weights`` has streamed weights in memory of the host.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        self._runtime = arena.runtime
        self._program = program
        self._limits = limits
        self._blocks = dict(blocks)
        self._clock = StepClock(self._runtime) if limits.spans else None
        self._memory = StageMemory(arena, program, blocks, limits)
        streams = bool(program.streamed) and self._runtime.has_additions
        self._stream = WeightStream(arena, program, weights) if streams else None
        self._weights = weights if self._stream is None else self._stream.body
        self._head_weights = weights if self._stream is None else self._stream.head
        self._tickets = [
            TicketMemory(
                self._runtime, program, limits, self._memory.outputs(place) if program.has_head else None
            )
            for place in range(limits.tickets)
        ]
        self._memory.place_changes(self._weights)
        self._bodies: dict[tuple[int, int, int, int | None, bool], Recording] = {}
        self._heads: dict[tuple[int, int], Recording] = {}
        self._splits_spans = scratch_words(program, 1) > 0
        self._free = list(range(limits.tickets))
        self._flights: dict[Ticket, Flight] = {}
        self._next = 0
        self._is_closed = False
        self._prepare()

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        self._check_open()
        check_submit(self._program, self._blocks, self._limits, step, hidden, selection)
        fed_from = None if step.feed is None else self._fed_from(step.feed)
        if not self._free:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        if self._clock is not None and not self._flights:
            self._clock.refresh()
        times = Stopwatch(is_on=self._limits.spans)
        flight = Flight(self._free[-1], step.num_rows, selection, times)
        try:
            self._queue(flight, step, hidden, fed_from)
        except MemoryBudgetError as error:
            raise _too_little_memory(error) from error
        times.stop("launch", "submit")
        self._free.pop()
        ticket = Ticket(self._next)
        self._next += 1
        self._flights[ticket] = flight
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        flight, _ = self._selected(ticket)
        outputs = self._outputs(flight.place)
        flight.times.start()
        outputs.apply_edits(edits)
        self._finish_if_complete(flight)
        flight.times.stop("launch", "edits")

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        flight, _ = self._selected(ticket)
        flight.times.start()
        self._outputs(flight.place).apply_masks(masks)
        self._finish_if_complete(flight)
        flight.times.stop("launch", "masks")

    def hidden(self, ticket: Ticket) -> HiddenRef:
        flight = self._find(ticket)
        memory = self._tickets[flight.place]
        if memory.hidden_out is None:
            raise ValueError("a stage that ends with the head has no hidden states to hand on")
        return HiddenRows(
            self._runtime, memory, memory.hidden_out, (flight.num_rows, self._program.output_size)
        )

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        flight = self._find(ticket)
        memory = self._tickets[flight.place]
        if part not in memory.taps:
            raise ValueError(f"part {part} is no tap of this stage")
        return HiddenRows(
            self._runtime, memory, memory.taps[part], (flight.num_rows, self._program.hidden_size)
        )

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        flight, _ = self._selected(ticket)
        outputs = self._outputs(flight.place)
        outputs.check_complete()
        try:
            self._tickets[flight.place].reach(self._runtime, timeout_s)
        except DeviceError:
            self.release(ticket)
            raise
        return outputs.result()

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        flight, selection = self._selected(ticket)
        check_outputs(selection, outputs)
        return self._outputs(flight.place).edited_rows(outputs)

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        flight, selection = self._selected(ticket)
        check_outputs(selection, outputs)
        return self._outputs(flight.place).raw_rows(outputs)

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        flight = self._find(ticket)
        assert self._clock is not None, "the stage was made without spans"
        self._tickets[flight.place].reach(self._runtime)
        return flight.spans(self._clock)

    def kernels(self) -> KernelUse:
        return kernel_use(self._runtime, streams=bool(self._program.streamed))

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
        for memory in self._tickets:
            with contextlib.suppress(DeviceLostError):
                memory.reach(self._runtime)
        if self._runtime.is_lost:
            self._runtime.abandon(self._tickets, self._bodies, self._heads, self._memory, self._stream)
        for memory in self._tickets:
            for buffer in memory.buffers:
                self._runtime.free(buffer)
        self._flights.clear()
        self._free.clear()
        del self._bodies, self._heads, self._tickets, self._memory
        del self._stream, self._weights, self._head_weights

    def _prepare(self) -> None:
        """Record steps of each size that has shaders of its own: drivers compile now, not in a later step."""
        for rows in distinct_tiles(self._limits.max_rows):
            split = rows <= SPLIT_ROWS and self._splits_spans
            for spans in (0, MOST_SPANS) if split else (0,):
                for adapted in (False, True) if applies_adapters(self._program) else (False,):
                    self._body(0, rows, spans, None, adapted=adapted)
        if self._program.has_head:
            for outputs in distinct_tiles(self._limits.max_outputs):
                self._head(0, outputs)
            self._outputs(0).prepare()
            if self._program.hidden_in is None:
                self._body(0, 1, 0, 0)

    def _queue(self, flight: Flight, step: Step, hidden: HiddenRef | None, fed_from: int | None) -> None:
        memory, selection = self._tickets[flight.place], flight.selection
        rows = None if hidden is None else hidden.host()
        memory.reach(self._runtime)  # it may have been released before its step ended
        bucket = bucket_of(step.num_rows, self._limits.max_rows)
        pack_step(memory.inputs.view, self._memory.layout(bucket), self._program, step, selection)
        if rows is not None and memory.hidden_in is not None:
            width, stride = rows.shape[1], stride_of(rows.shape[1])
            held = memory.hidden_in.view[: len(rows) * stride].view(np.float32).reshape(len(rows), stride)
            held[:, :width] = rows
        if len(step.copies):
            self._run(flight, self._copies(step))
        adapted = has_adapters(self._program, step)
        self._run(flight, self._body(flight.place, bucket, self._spans(step), fed_from, adapted=adapted))
        if selection is not None:
            self._outputs(flight.place).begin(selection)
            if selection.num_rows:
                outputs = bucket_of(selection.num_rows, self._limits.max_outputs)
                self._run(flight, self._head(flight.place, outputs))
            self._finish_if_complete(flight)

    def _run(self, flight: Flight, recording: Recording) -> None:
        recording.submit()
        self._tickets[flight.place].running.append(recording)
        flight.recordings.append(recording)

    def _finish_if_complete(self, flight: Flight) -> None:
        """Compute candidates and tokens, unless edits or masks are missing."""
        outputs, selection = self._outputs(flight.place), flight.selection
        if selection is None or not selection.num_rows or not outputs.is_complete:
            return
        try:
            recording = outputs.recording(bucket_of(selection.num_rows, self._limits.max_outputs))
        except MemoryBudgetError as error:
            raise _too_little_memory(error) from error
        self._run(flight, recording)

    def _fed_from(self, ticket: Ticket) -> int:
        """Return the place of a ticket whose tokens another step takes."""
        flight, _ = self._selected(ticket)
        self._outputs(flight.place).check_complete()
        return flight.place

    def _spans(self, step: Step) -> int:
        """Return the bucket of the spans of a step; 0 if they are not computed apart."""
        if not self._splits_spans or step.num_rows > SPLIT_ROWS:
            return 0
        groups = [group for group in self._program.groups if group.layers and group.kind != "state"]
        kinds = {(group.stride, group.window) for group in groups}
        spans = [spans_of(last_seen(step.positions, stride), window) for stride, window in kinds]
        most = max(int(of_rows.max()) for of_rows in spans)
        return 0 if most <= 1 else bucket_of(most, MOST_SPANS)

    def _body(
        self, place: int, bucket: int, spans: int, fed_from: int | None, *, adapted: bool = False
    ) -> Recording:
        """Return the recording of everything but the head, with the copies to and from the device.

        Negative tokens are those of the ticket at the place ``fed_from``. ``adapted``: rows have adapters.
        """
        key = place, bucket, spans, fed_from, adapted
        if key not in self._bodies:
            context = self._memory.context(bucket, spans, self._weights, adapted=adapted)
            memory, program = self._tickets[place], self._program
            begin: Phase = [copy_step(memory.inputs, context.work, context.step_at, context.layout.end)]
            if memory.hidden_in is not None and program.hidden_in is not None:
                slot = program.hidden_in
                words = bucket * context.stride(slot)
                begin.append(copy(memory.hidden_in, 0, context.work, context.slots[slot], words))
            feed = [] if fed_from is None else [self._feed(context, fed_from)]
            parts = body_phases(context, self._weights.copies)
            layers = [self._weights.segment(part, phases, "layers") for part, phases in parts]
            self._bodies[key] = self._record(
                [
                    Segment([begin, feed], "copy", "inputs"),
                    *layers,
                    Segment([self._leaving(context, memory)], "copy", "hidden states"),
                ]
            )
        return self._bodies[key]

    def _feed(self, context: Context, place: int) -> Dispatch:
        token_ids = context.place("token_ids")
        return self._outputs(place).feed(context.work, context.counts, token_ids, context.rows)

    def _leaving(self, context: Context, memory: TicketMemory) -> Phase:
        """Return the copies of the rows that leave the stage."""
        program = self._program
        leaving = [
            (memory.taps[part], slot) for part, slot in zip(program.taps, program.tap_slots, strict=True)
        ]
        if memory.hidden_out is not None and program.hidden_out is not None:
            leaving.append((memory.hidden_out, program.hidden_out))
        return [
            copy(context.work, context.slots[slot], target, 0, context.rows * context.stride(slot))
            for target, slot in leaving
        ]

    def _head(self, place: int, outputs: int) -> Recording:
        """Return the recording of the head."""
        key = place, outputs
        if key not in self._heads:
            context = self._memory.context(self._limits.max_rows, 0, self._head_weights)
            phases = head_phases(context, self._outputs(place).raw, outputs)
            part = next(iter(self._head_weights.copies), None)
            self._heads[key] = self._record([self._head_weights.segment(part, phases, "head")])
        return self._heads[key]

    def _record(self, segments: Sequence[Segment]) -> Recording:
        return self._runtime.record_segments(segments, keeps_times=self._limits.spans)

    def _copies(self, step: Step) -> Recording:
        """Return the recording that copies blocks."""
        listed = self._runtime.host(step.copies.size)
        listed.view[: step.copies.size] = step.copies.reshape(-1).view(np.uint32)
        pools = self._memory.pools.values()
        phases = [[one for pool in pools for one in pool.copies(listed, len(step.copies))]]
        recording = self._record([Segment(phases, "copy", "blocks")])
        self._runtime.free(listed)
        return recording

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
