"""The stage of a device: steps are submitted as recordings, which are made once for each size of a step."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api import HiddenRef, LateEdits, Program, Selection, StageLimits, Step, StepResult, Ticket
from llmd.api.candidates import OutputRows
from llmd.api.checks import check_submit
from llmd.api.errors import DeviceError, DeviceLostError, DeviceMemoryError, MemoryBudgetError
from llmd.api.step import Float32, Int32
from llmd_backend_vulkan.buckets import bucket_of
from llmd_backend_vulkan.context import stride_of
from llmd_backend_vulkan.matrices import DeviceMatrix
from llmd_backend_vulkan.memory import Arena, Region, copy
from llmd_backend_vulkan.ops.attention import MOST_SPANS, SPLIT_ROWS, spans_of
from llmd_backend_vulkan.programs import Phase, body_phases, head_phases
from llmd_backend_vulkan.runtime import Recording
from llmd_backend_vulkan.stage_memory import StageMemory
from llmd_backend_vulkan.step_memory import pack_step
from llmd_backend_vulkan.tickets import Flight, HiddenRows, TicketMemory, matrix_of


class VulkanStage:
    """See `llmd.api.Stage`."""

    def __init__(
        self,
        arena: Arena,
        program: Program,
        matrices: Sequence[DeviceMatrix | None],
        vectors: Sequence[Region | None],
        blocks: Mapping[int, int],
        limits: StageLimits,
    ) -> None:
        """Allocate everything.

        Raises:
            MemoryBudgetError: there is not enough memory.
        """
        self._runtime = arena.runtime
        self._program = program
        self._limits = limits
        self._blocks = dict(blocks)
        self._matrices = matrices
        self._vectors = vectors
        self._memory = StageMemory(arena, program, blocks, limits)
        self._tickets = [TicketMemory(self._runtime, program, limits) for _ in range(limits.tickets)]
        self._bodies: dict[tuple[int, int, int], Recording] = {}
        self._heads: dict[tuple[int, int], Recording] = {}
        self._free = list(range(limits.tickets))
        self._flights: dict[Ticket, Flight] = {}
        self._next = 0
        self._is_closed = False

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        self._check_open()
        check_submit(self._program, self._blocks, self._limits, step, hidden, selection)
        token_ids = self._tokens(step)
        if not self._free:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        flight = Flight(self._free[-1], step.num_rows, selection)
        try:
            self._queue(flight, step, token_ids, hidden)
        except MemoryBudgetError as error:
            raise DeviceMemoryError(error.message, hint="lower --kv-memory, --slots or --max-ctx") from error
        self._free.pop()
        ticket = Ticket(self._next)
        self._next += 1
        self._flights[ticket] = flight
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        self._outputs(ticket).apply_edits(edits)

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        self._outputs(ticket).apply_masks(masks)

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
        try:
            outputs = self._outputs(ticket, timeout_s)
        except DeviceError:
            self.release(ticket)
            raise
        return outputs.result()

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        found = self._outputs(ticket)
        found.result()
        return found.edited[self._checked(ticket, outputs)]

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        return self._outputs(ticket).raw[self._checked(ticket, outputs)]

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
            self._runtime.abandon(self._tickets, self._bodies, self._heads, self._memory)
        for memory in self._tickets:
            for buffer in memory.buffers:
                self._runtime.free(buffer)
        self._flights.clear()
        self._free.clear()
        del self._bodies, self._heads, self._tickets, self._memory, self._matrices, self._vectors

    def _queue(self, flight: Flight, step: Step, token_ids: Int32, hidden: HiddenRef | None) -> None:
        memory, selection = self._tickets[flight.place], flight.selection
        rows = None if hidden is None else hidden.host()
        memory.reach(self._runtime)  # it may have been released before its step ended
        bucket = bucket_of(step.num_rows, self._limits.max_rows)
        pack_step(memory.inputs.view, self._memory.layout(bucket), self._program, step, token_ids, selection)
        if rows is not None and memory.hidden_in is not None:
            width, stride = rows.shape[1], stride_of(rows.shape[1])
            held = memory.hidden_in.view[: len(rows) * stride].view(np.float32).reshape(len(rows), stride)
            held[:, :width] = rows
        recordings = [] if not len(step.copies) else [self._copies(flight, step)]
        recordings.append(self._body(flight.place, bucket, self._spans(step)))
        if selection is not None and selection.num_rows:
            recordings.append(
                self._head(flight.place, bucket_of(selection.num_rows, self._limits.max_outputs))
            )
        for recording in recordings:
            recording.submit()
            memory.running.append(recording)

    def _tokens(self, step: Step) -> Int32:
        """Return the step's tokens, with those that an earlier step chose filled in."""
        if step.feed is None:
            return step.token_ids
        fed = self._outputs(step.feed)
        return np.array([t if t >= 0 else fed.token(-1 - t) for t in step.token_ids.tolist()], np.int32)

    def _spans(self, step: Step) -> int:
        """Return the bucket of the spans of a step; 0 if they are not computed apart."""
        windows = {group.window for group in self._program.groups if group.layers and group.kind == "paged"}
        if not windows or step.num_rows > SPLIT_ROWS:
            return 0
        most = max(int(spans_of(step.positions, window).max()) for window in windows)
        return 0 if most == 1 else bucket_of(most, MOST_SPANS)

    def _body(self, place: int, bucket: int, spans: int) -> Recording:
        """Return the recording of everything but the head, with the copies to and from the device."""
        key = place, bucket, spans
        if key not in self._bodies:
            context = self._memory.context(bucket, spans, self._matrices, self._vectors)
            memory, program = self._tickets[place], self._program
            begin: Phase = [copy(memory.inputs, 0, context.work, context.step_at, context.layout.end)]
            if memory.hidden_in is not None and program.hidden_in is not None:
                slot = program.hidden_in
                begin.append(
                    copy(
                        memory.hidden_in, 0, context.work, context.slots[slot], bucket * context.stride(slot)
                    )
                )
            leaving = [
                (memory.taps[part], slot) for part, slot in zip(program.taps, program.tap_slots, strict=True)
            ]
            if memory.hidden_out is not None and program.hidden_out is not None:
                leaving.append((memory.hidden_out, program.hidden_out))
            end: Phase = [
                copy(context.work, context.slots[slot], target, 0, bucket * context.stride(slot))
                for target, slot in leaving
            ]
            self._bodies[key] = self._runtime.record([begin, *body_phases(context), end])
        return self._bodies[key]

    def _head(self, place: int, outputs: int) -> Recording:
        """Return the recording of the head and the copy of its logits to the host."""
        key = place, outputs
        if key not in self._heads:
            context = self._memory.context(self._limits.max_rows, 0, self._matrices, self._vectors)
            logits, target = self._memory.logits, self._tickets[place].logits
            assert target is not None, "the program ends with the head"
            words = outputs * stride_of(self._program.vocab_size)
            end: Phase = [copy(context.work, logits, target, 0, words)]
            self._heads[key] = self._runtime.record([*head_phases(context, logits, outputs), end])
        return self._heads[key]

    def _copies(self, flight: Flight, step: Step) -> Recording:
        """Return the recording that copies blocks."""
        listed = self._runtime.host(step.copies.size)
        listed.view[: step.copies.size] = step.copies.reshape(-1).view(np.uint32)
        pools = self._memory.pools.values()
        recording = self._runtime.record(
            [[one for pool in pools for one in pool.copies(listed, len(step.copies))]]
        )
        self._runtime.free(listed)
        flight.kept.append(recording)
        return recording

    def _outputs(self, ticket: Ticket, timeout_s: float | None = None) -> OutputRows:
        """Return the results of a ticket; wait for the device."""
        flight = self._find(ticket)
        if flight.selection is None:
            raise ValueError("a stage without the head has no candidates")
        if flight.outputs is None:
            memory = self._tickets[flight.place]
            memory.reach(self._runtime, **({} if timeout_s is None else {"timeout_s": timeout_s}))
            assert memory.logits is not None, "the program ends with the head"
            logits = matrix_of(memory.logits, flight.selection.num_rows, self._program.vocab_size)
            flight.outputs = OutputRows(logits, flight.selection, self._limits.num_candidates)
        return flight.outputs

    def _find(self, ticket: Ticket) -> Flight:
        if ticket not in self._flights:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._flights[ticket]

    def _checked(self, ticket: Ticket, outputs: Int32) -> Int32:
        selection = self._find(ticket).selection
        assert selection is not None, "checked by the caller"
        if np.any((outputs < 0) | (outputs >= selection.num_rows)):
            raise ValueError(f"output rows {outputs.tolist()} are outside of 0..{selection.num_rows - 1}")
        return outputs

    def _check_group(self, group: int) -> None:
        self._check_open()
        if group not in self._memory.pools:
            raise ValueError(f"this stage keeps nothing for KV group {group}")

    def _check_open(self) -> None:
        if self._is_closed:
            raise ValueError("this stage is closed")
