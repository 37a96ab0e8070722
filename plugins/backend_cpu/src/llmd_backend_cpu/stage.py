"""The CPU stage: one native call per step, which writes results to the arrays of its ticket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llmd.api import HiddenRef, HostHidden, Program, Selection, StageLimits, Step, StepResult, Ticket
from llmd.api.checks import check_ends, check_selection, check_step
from llmd.api.errors import DeviceError
from llmd.api.output_checks import check_masks, check_outputs
from llmd.api.spans import Span, Stopwatch
from llmd.api.step import Float32, Int32, LateEdits
from llmd_backend_cpu import _ext
from llmd_backend_cpu.tickets import TicketArrays


@dataclass
class _Open:
    """A ticket in flight."""

    place: int
    """Its index among the native tickets."""
    num_rows: int
    selection: Selection | None
    waits_for_masks: bool
    times: Stopwatch


class CpuStage:
    """See `llmd.api.Stage`."""

    def __init__(
        self, program: Program, weights: _ext.Weights, blocks: Mapping[int, int], limits: StageLimits
    ) -> None:
        self._program = program
        self._weights = weights
        self._limits = limits
        self._blocks = dict(blocks)
        self._native: _ext.Stage | None = _ext.Stage(
            weights,
            blocks=[blocks.get(group.id, 0) for group in program.groups],
            max_rows=limits.max_rows,
            max_sequences=limits.max_sequences,
            max_outputs=limits.max_outputs,
            num_candidates=limits.num_candidates,
            kv_dtype=limits.kv_dtype,
        )
        self._arrays = [TicketArrays.allocate(program, limits) for _ in range(limits.tickets)]
        for arrays in self._arrays:
            self._native.add_ticket(**vars(arrays))
        self._free = list(range(limits.tickets))
        self._open: dict[Ticket, _Open] = {}
        self._next = 0

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        times = Stopwatch(is_on=self._limits.spans)
        self._opened()
        check_ends(self._program, hidden, selection)
        if not self._free:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        feed = -1 if step.feed is None else self._finished(step.feed).place
        rows = None if hidden is None else self._host_rows(step, hidden)
        try:
            self._run(self._free[-1], step, feed, rows, selection, times)
        except TypeError as error:
            self._explain(step, selection)
            raise ValueError(str(error)) from error
        ticket = Ticket(self._next)
        self._next += 1
        masked = selection is not None and bool(selection.masked.any())
        self._open[ticket] = _Open(self._free.pop(), step.num_rows, selection, masked, times)
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        raise NotImplementedError("the device does not claim draws")

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        entry, selection = self._outputs(ticket)
        check_masks(self._program.vocab_size, selection, masks)
        if not masks.flags.c_contiguous:
            raise ValueError("masks are not contiguous in C order")
        entry.times.start()
        self._opened().apply_masks(entry.place, masks)
        entry.times.stop("device", "masks")
        entry.waits_for_masks = False

    def hidden(self, ticket: Ticket) -> HiddenRef:
        if self._program.has_head:
            raise ValueError("a stage that ends with the head has no hidden states to hand on")
        entry = self._find(ticket)
        return HostHidden(self._arrays[entry.place].hidden[: entry.num_rows])

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        raise NotImplementedError("it keeps no taps")

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        entry = self._finished(ticket)
        _, selection = self._outputs(ticket)
        vocab = self._program.vocab_size
        candidates, raw_top = min(self._limits.num_candidates, vocab), min(selection.raw_top, vocab)
        return self._arrays[entry.place].result(selection.num_rows, candidates, raw_top)

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        entry = self._finished(ticket)
        check_outputs(self._outputs(ticket)[1], outputs)
        return self._arrays[entry.place].edited[outputs]

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        entry = self._find(ticket)
        check_outputs(self._outputs(ticket)[1], outputs)
        return self._arrays[entry.place].raw[outputs]

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        return self._find(ticket).times.spans

    def release(self, ticket: Ticket) -> None:
        self._free.append(self._find(ticket).place)
        del self._open[ticket]

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        contents = np.empty((len(blocks), self._block_bytes(group)), np.uint8)
        self._opened().read_blocks(group, blocks, contents)
        return contents

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        expected = (len(blocks), self._block_bytes(group))
        if contents.shape != expected:
            raise ValueError(f"contents are {contents.shape}, expected {expected}")
        self._opened().write_blocks(group, blocks, np.ascontiguousarray(contents))

    def close(self) -> None:
        self._native = None
        self._open.clear()
        self._arrays.clear()
        self._free.clear()

    def _run(
        self,
        place: int,
        step: Step,
        feed: int,
        hidden: Float32 | None,
        selection: Selection | None,
        times: Stopwatch,
    ) -> None:
        native = self._opened()
        outputs = None if selection is None else _native_selection(selection)
        times.stop("launch", "arguments")
        native.submit(
            place,
            step.token_ids,
            step.positions,
            step.row_offsets,
            list(step.block_tables),
            step.copies,
            feed,
            hidden,
            outputs,
            step.token_types,
            step.adapters,
        )
        times.stop("device", "step")

    def _host_rows(self, step: Step, hidden: HiddenRef) -> Float32:
        rows = hidden.host()
        if rows.shape != (step.num_rows, self._program.hidden_size):
            raise ValueError(
                f"hidden states are {rows.shape}, expected {(step.num_rows, self._program.hidden_size)}"
            )
        return rows

    def _explain(self, step: Step, selection: Selection | None) -> None:
        """Raise ValueError for the array whose dtype or layout the native code rejected."""
        check_step(self._program, self._blocks, self._limits, step)
        if selection is not None:
            check_selection(self._program, self._limits, step, selection)

    def _block_bytes(self, group: int) -> int:
        if group not in self._blocks:
            raise ValueError(f"this stage keeps nothing for KV group {group}")
        return self._weights.kv_block_bytes(group, self._limits.kv_dtype)

    def _opened(self) -> _ext.Stage:
        if self._native is None:
            raise ValueError("this stage is closed")
        return self._native

    def _find(self, ticket: Ticket) -> _Open:
        if ticket not in self._open:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._open[ticket]

    def _finished(self, ticket: Ticket) -> _Open:
        entry = self._find(ticket)
        if entry.waits_for_masks:
            raise ValueError("masked rows have no candidates before apply_masks")
        return entry

    def _outputs(self, ticket: Ticket) -> tuple[_Open, Selection]:
        entry = self._find(ticket)
        if entry.selection is None:
            raise ValueError("a stage without the head has no candidates")
        return entry, entry.selection


def _native_selection(selection: Selection) -> _ext.Selection:
    return _ext.Selection(
        selection.rows,
        selection.edit_offsets,
        selection.edit_ids,
        selection.edit_factors,
        selection.edit_biases,
        selection.masked,
        selection.temperatures,
        selection.targets,
        selection.raw_top,
    )
