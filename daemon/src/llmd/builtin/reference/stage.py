"""The reference stage: it computes in `submit` and keeps results until their ticket is released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from llmd.api.candidates import OutputRows
from llmd.api.checks import check_submit
from llmd.api.device import HiddenRef, HostHidden, StageLimits
from llmd.api.errors import DeviceError
from llmd.api.program import Program
from llmd.api.spans import Span, Stopwatch
from llmd.api.step import Float32, Int32, LateEdits, Selection, Step, StepResult, Ticket
from llmd.builtin.reference.executor import Execution, Pool, Weights
from llmd.builtin.reference.kv import KVPool
from llmd.builtin.reference.states import StatePool


class _Done(msgspec.Struct, frozen=True):
    hidden: Float32 | None
    outputs: OutputRows | None
    taps: dict[int, Float32]
    times: Stopwatch


class ReferenceStage:
    """See `llmd.api.Stage`."""

    execution: type[Execution] = Execution
    """What computes a step; tests derive other arithmetic from it."""

    def __init__(
        self, program: Program, weights: Weights, blocks: Mapping[int, int], limits: StageLimits
    ) -> None:
        self._program = program
        self._weights = weights
        self._blocks = dict(blocks)
        self._limits = limits
        self._pools: dict[int, Pool] = {
            group.id: StatePool(group, blocks[group.id])
            if group.kind == "state"
            else KVPool(group, blocks[group.id], limits.kv_dtype)
            for group in program.groups
            if group.layers
        }
        self._done: dict[Ticket, _Done] = {}
        self._next = 0

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        times = Stopwatch(is_on=self._limits.spans)
        self._check(step, hidden, selection)
        times.stop("launch", "check")
        for group, source, target in step.copies.tolist():
            if group in self._pools:
                self._pools[group].copy(source, target)
        times.stop("copy", "blocks")
        execution = self.execution(self._program, self._weights, self._pools, step, self._tokens(step))
        leaving, logits = execution.run(
            None if hidden is None else hidden.host(), None if selection is None else selection.rows
        )
        outputs = None
        if selection is not None and logits is not None:
            times.stop("device", "layers")
            outputs = OutputRows(logits, selection, self._limits.num_candidates)
        times.stop("device", "layers" if outputs is None else "candidates")
        ticket = Ticket(self._next)
        self._next += 1
        self._done[ticket] = _Done(leaving, outputs, execution.taps(), times)
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        outputs, times = self._outputs(ticket), self._find(ticket).times
        times.start()
        outputs.apply_edits(edits)
        times.stop("device", "edits")

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        outputs, times = self._outputs(ticket), self._find(ticket).times
        times.start()
        outputs.apply_masks(masks)
        times.stop("device", "masks")

    def hidden(self, ticket: Ticket) -> HiddenRef:
        hidden = self._find(ticket).hidden
        if hidden is None:
            raise ValueError("a stage that ends with the head has no hidden states to hand on")
        return HostHidden(hidden)

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        taps = self._find(ticket).taps
        if part not in taps:
            raise ValueError(f"part {part} is no tap of this stage; its taps are {list(taps)}")
        return HostHidden(taps[part])

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        return self._outputs(ticket).result()

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        return self._outputs(ticket).edited[outputs]

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        return self._outputs(ticket).raw[outputs]

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        return self._find(ticket).times.spans

    def release(self, ticket: Ticket) -> None:
        self._find(ticket)
        del self._done[ticket]

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        return self._pool(group).read_blocks(blocks)

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        self._pool(group).write_blocks(blocks, contents)

    def close(self) -> None:
        self._done.clear()
        self._pools.clear()

    def _check(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> None:
        check_submit(self._program, self._blocks, self._limits, step, hidden, selection)
        if len(self._done) >= self._limits.tickets:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")

    def _tokens(self, step: Step) -> Int32:
        if step.feed is None:
            return step.token_ids
        fed = self._outputs(step.feed)
        chosen = [t if t >= 0 else fed.token(-1 - t) for t in step.token_ids.tolist()]
        return np.array(chosen, np.int32)

    def _pool(self, group: int) -> Pool:
        if group not in self._pools:
            raise ValueError(f"this stage has no KV blocks for group {group}")
        return self._pools[group]

    def _outputs(self, ticket: Ticket) -> OutputRows:
        outputs = self._find(ticket).outputs
        if outputs is None:
            raise ValueError("a stage without the head has no candidates")
        return outputs

    def _find(self, ticket: Ticket) -> _Done:
        if ticket not in self._done:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._done[ticket]
