"""An instruction on the simulated device, and on the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llmd.api import KVGroup, StageLimits
from llmd.api.ops import Op
from llmd.api.program import Instruction, Program, SlottedOp
from llmd.api.step import Float32, Step
from llmd.builtin.reference.executor import Execution, Pool, Weights
from llmd_backend_cuda.context import Context, StepArgs
from llmd_backend_cuda.runtime import Launch, Memory, Runtime
from tests.cuda.simt.runtime import SimtRuntime

PADDING_ROWS = 3
"""Rows of a launch that no step has."""


def random_rows(rows: int, width: int, seed: int = 0, scale: float = 1.0) -> Float32:
    """Return normally distributed values."""
    return (scale * np.random.default_rng(seed).standard_normal((rows, width))).astype(np.float32)


def make_step(lengths: Sequence[int], *, tables: Sequence[NDArray[np.int32]] = (), vocab: int = 50) -> Step:
    """Return a step of sequences from position 0, with random tokens and token types."""
    rows, draw = sum(lengths), np.random.default_rng(3)
    return Step(
        token_ids=draw.integers(0, vocab, rows, np.int32),
        positions=np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]),
        row_offsets=np.cumsum([0, *lengths], dtype=np.int32),
        block_tables=tuple(tables),
        copies=np.empty((0, 3), np.int32),
        token_types=draw.integers(0, 2, rows, np.int32),
    )


def one_op(
    op: Op, inputs: int, weights: Sequence[int | None] = (), kv_layer: int | None = None
) -> Instruction:
    """Return an instruction whose op reads the first slots and writes the next one."""
    slotted = SlottedOp(op, tuple(range(inputs)), (inputs,), tuple(weights), kv_layer=kv_layer)
    return Instruction((slotted,), 0, (inputs,))


class OneInstruction:
    """An instruction, the values in its slots, and its weights as float32."""

    def __init__(
        self,
        instruction: Instruction,
        widths: Sequence[int],
        weights: Sequence[Float32] = (),
        *,
        groups: Sequence[KVGroup] = (),
    ) -> None:
        self.instruction = instruction
        self.weights = weights
        self.program = Program(
            first_part=0,
            last_part=1,
            hidden_size=widths[-1],
            vocab_size=50,
            context_len=256,
            groups=tuple(groups),
            instructions=(instruction,),
            slot_widths=tuple(widths),
            weights=(),
            ropes=(),
            hidden_in=None,
            hidden_out=None,
            precision="f16",
        )

    def reference(
        self, step: Step, values: Mapping[int, Float32], pools: Mapping[int, Pool] | None = None
    ) -> dict[int, Float32]:
        """Return the slots that the reference writes."""
        arrays = {index: weight.astype(np.float64) for index, weight in enumerate(self.weights)}
        execution = Execution(self.program, Weights({}, arrays), pools or {}, step, step.token_ids)
        execution._slots.update(values)
        execution.run(None, None)
        return {slot: execution._slots[slot] for slot in self.instruction.outputs}


class OnDevice:
    """A context with a step of an instruction, padded to some more rows."""

    def __init__(
        self, one: OneInstruction, step: Step, values: Mapping[int, Float32], *, order: str | int = 1
    ) -> None:
        self.runtime = SimtRuntime(order=order)
        self.num_rows = step.num_rows
        self.rows = step.num_rows + PADDING_ROWS
        widths = one.program.slot_widths
        self.slots = [self.runtime.allocate(4 * self.rows * width) for width in widths]
        for slot, value in values.items():
            self.runtime.upload(self.slots[slot], 0, value)
        self._kept: list[Memory] = []
        self.context = Context(
            self.runtime,
            one.program,
            StageLimits(self.rows, step.num_sequences + 1, 1),
            self._step_args(step),
            self.slots,
            [upload(self.runtime, weight) for weight in one.weights],
            (),
        )

    def run(self, launch: Launch, *outputs: int) -> list[Float32]:
        """Return the rows of the step in the slots that a launch has written."""
        self.runtime.launch(launch)
        return [self.read(slot) for slot in outputs]

    def read(self, slot: int) -> Float32:
        """Return the rows of the step in a slot."""
        array = np.empty((self.num_rows, self.context.program.slot_widths[slot]), np.float32)
        self.runtime.download(array, self.slots[slot], 0)
        return array

    def keep(self, array: NDArray[np.generic]) -> int:
        """Return the address of a copy of an array."""
        self._kept.append(upload(self.runtime, array))
        return self._kept[-1].pointer

    def _step_args(self, step: Step) -> StepArgs:
        sequences = np.repeat(np.arange(step.num_sequences, dtype=np.int32), np.diff(step.row_offsets))
        types = np.zeros_like(step.token_ids) if step.token_types is None else step.token_types
        counts = np.array([step.num_rows, step.num_sequences, 0, 0], np.int32)
        by_row = (step.token_ids, step.positions, sequences, types)
        padded = [np.pad(array, (0, PADDING_ROWS)) for array in by_row]
        return StepArgs(*(self.keep(array) for array in (counts, *padded, step.row_offsets)), 0)


def upload(runtime: Runtime, array: NDArray[np.generic]) -> Memory:
    """Return memory with the bytes of an array."""
    memory = runtime.allocate(array.nbytes)
    runtime.upload(memory, 0, np.ascontiguousarray(array))
    return memory


def nmse(found: Float32, expected: Float32) -> float:
    """Return the squared error over the squared reference."""
    wide = expected.astype(np.float64)
    return float(np.sum((found - wide) ** 2) / np.sum(wide**2))
