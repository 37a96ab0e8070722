"""A stage: the KV cache and the steps in flight. This device computes in `submit` and keeps the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    DeviceError,
    HiddenRef,
    HostHidden,
    Program,
    Selection,
    Span,
    StageLimits,
    Step,
    StepResult,
    Ticket,
)
from llmd.api.candidates import OutputRows
from llmd.api.checks import check_submit
from llmd.api.step import Float32, Int32, LateEdits
from llmd_backend_example.kernels.kernel import Batch, Kernel
from llmd_backend_example.kv import KVPool


@dataclass(frozen=True)
class _Computed:
    """The result of a step: hidden states for the next stage, or the logits of its output rows."""

    hidden: Float32 | None
    outputs: OutputRows | None


class ExampleStage:
    """See `llmd.api.Stage`."""

    def __init__(
        self, program: Program, kernels: Sequence[Kernel], blocks: Mapping[int, int], limits: StageLimits
    ) -> None:
        self._program = program
        self._kernels = kernels
        self._blocks = blocks
        self._limits = limits
        self._pools = {g.id: KVPool(g, blocks[g.id], limits.kv_dtype) for g in program.groups if g.layers}
        self._in_flight: dict[Ticket, _Computed] = {}
        self._num_submitted = 0

    def submit(self, step: Step, hidden: HiddenRef | None, selection: Selection | None) -> Ticket:
        """Run the whole step: block copies, the instructions in order, candidates."""
        check_submit(self._program, self._blocks, self._limits, step, hidden, selection)
        if len(self._in_flight) == self._limits.tickets:
            raise DeviceError(f"all {self._limits.tickets} tickets are in flight", hint="release one first")
        for group, source, target in step.copies.tolist():
            if group in self._pools:
                self._pools[group].copy(source, target)
        batch = Batch(step, self._tokens(step), self._pools, selection)
        computed = self._run(batch, None if hidden is None else hidden.host())
        ticket = Ticket(self._num_submitted)
        self._num_submitted += 1
        self._in_flight[ticket] = computed
        return ticket

    def apply_edits(self, ticket: Ticket, edits: LateEdits) -> None:
        """Never called: ``info.features`` does not have ``draws``."""
        raise NotImplementedError

    def apply_masks(self, ticket: Ticket, masks: NDArray[np.uint32]) -> None:
        """Finish the rows that need grammar masks."""
        self._outputs(ticket).apply_masks(masks)

    def hidden(self, ticket: Ticket) -> HiddenRef:
        """Return the hidden states for the next stage. A GPU would keep them until `host` is called."""
        hidden = self._find(ticket).hidden
        if hidden is None:
            raise ValueError("a stage that ends with the head has no hidden states")
        return HostHidden(hidden)

    def wait(self, ticket: Ticket, timeout_s: float) -> StepResult:
        """Return the candidates. They are ready here; with a GPU, wait for up to ``timeout_s``."""
        return self._outputs(ticket).result()

    def rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        """Return the logits with edits and masks."""
        return self._outputs(ticket).edited[outputs]

    def raw_rows(self, ticket: Ticket, outputs: Int32) -> Float32:
        """Return the head's logits, without edits and masks."""
        return self._outputs(ticket).raw[outputs]

    def release(self, ticket: Ticket) -> None:
        """Forget the step."""
        self._find(ticket)
        del self._in_flight[ticket]

    def tap(self, ticket: Ticket, part: int) -> HiddenRef:
        """Never called: the device does not claim taps."""
        raise NotImplementedError

    def spans(self, ticket: Ticket) -> Sequence[Span]:
        """Never called: the device does not claim spans."""
        raise NotImplementedError

    def read_blocks(self, group: int, blocks: Int32) -> NDArray[np.uint8]:
        """Never called: ``info.kv_layout`` is empty."""
        raise NotImplementedError

    def write_blocks(self, group: int, blocks: Int32, contents: NDArray[np.uint8]) -> None:
        """Never called: ``info.kv_layout`` is empty."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the KV cache and the steps. Closing twice is allowed."""
        self._pools.clear()
        self._in_flight.clear()

    def _run(self, batch: Batch, hidden: Float32 | None) -> _Computed:
        """Run the instructions in order on buffer slots ``[rows, width]``. The head's logits have no slot."""
        program, slots = self._program, dict[int, Float32]()
        if program.hidden_in is not None and hidden is not None:
            slots[program.hidden_in] = hidden
        results: Sequence[Float32] = ()
        ops = (slotted for instruction in program.instructions for slotted in instruction.ops)
        for slotted, kernel in zip(ops, self._kernels, strict=True):
            results = kernel.run(batch, [slots[slot] for slot in slotted.inputs])
            slots.update(zip(slotted.outputs, results, strict=False))
        if batch.selection is None:
            assert program.hidden_out is not None, "a program without a head returns hidden states"
            return _Computed(np.ascontiguousarray(slots[program.hidden_out]), None)
        outputs = OutputRows(results[0], batch.selection, self._limits.num_candidates)
        return _Computed(None, outputs)

    def _tokens(self, step: Step) -> Int32:
        """Return the step's tokens, with those that an earlier step chose filled in."""
        if step.feed is None:
            return step.token_ids
        fed = self._outputs(step.feed)
        return np.array([t if t >= 0 else fed.token(-1 - t) for t in step.token_ids.tolist()], np.int32)

    def _outputs(self, ticket: Ticket) -> OutputRows:
        outputs = self._find(ticket).outputs
        if outputs is None:
            raise ValueError("a stage without the head has no candidates")
        return outputs

    def _find(self, ticket: Ticket) -> _Computed:
        if ticket not in self._in_flight:
            raise ValueError(f"ticket {ticket} is not in flight")
        return self._in_flight[ticket]
