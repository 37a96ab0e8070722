"""An op with a state on the simulated device and in the reference, over the same steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import (
    GatedDelta,
    GeneralizedDelta,
    Instruction,
    KVGroup,
    SlottedOp,
    StateSpace,
    TokenShift,
)
from llmd.api.step import Float32
from llmd.builtin.reference.states import StatePool
from llmd_backend_cuda.ops.gated_delta import gated_delta_launches
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.ops.state_rows import StateRows, StateRowsSizes
from llmd_backend_cuda.ops.state_space import state_space_launches
from llmd_backend_cuda.ops.time_mix import generalized_delta_launches, launch_token_shift
from llmd_backend_cuda.runtime import Launch
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, random_rows

LAYERS, SLOTS = 2, 6
MAX_NMSE = 1e-11
BEHIND = 3
"""Elements of the state of a layer behind those of an op that has a part of it."""

StateOp = GatedDelta | StateSpace | TokenShift | GeneralizedDelta


def input_widths(op: StateOp) -> tuple[int, ...]:
    """Return the widths of the inputs of an op."""
    match op:
        case TokenShift():
            return (op.state_elements,)
        case GeneralizedDelta():
            return (op.heads * op.head_dim,) * 5
        case _:
            keys, values = op.sizes.key_heads * op.sizes.key_dim, op.heads * op.sizes.value_dim
            return (keys, keys, values, op.bias.shape[-1], op.heads)[: len(op.reads)]


def state_size(op: StateOp) -> int:
    """Return the elements of the state of a layer."""
    if isinstance(op, GatedDelta | StateSpace):
        return op.state_elements
    return op.offset + op.state_elements + BEHIND


def launches(
    op: StateOp, device: OnDevice, slotted: SlottedOp, states: States, scratch: StateRows
) -> list[Launch]:
    """Return the launches of an op."""
    args = (device.context, slotted, device.rows, states)
    match op:
        case GatedDelta():
            return list(gated_delta_launches(*args, scratch))
        case StateSpace():
            return list(state_space_launches(*args, scratch))
        case GeneralizedDelta():
            return list(generalized_delta_launches(*args, scratch))
        case _:
            return [launch_token_shift(*args)]


class Bench:
    """An op with its tensors, and the states of all slots."""

    def __init__(self, op: StateOp) -> None:
        refs = [ref for ref in op.tensors if ref is not None]
        draw = np.random.default_rng(5)
        tensors = [draw.standard_normal(ref.view_shape).astype(np.float32) for ref in refs]
        if isinstance(op, GatedDelta | StateSpace) and op.rates_as == "negative":
            tensors[3] = -np.exp(tensors[3])
        size = state_size(op)
        group = KVGroup(0, None, 0, 0, tuple(range(LAYERS)), kind="state", state_bytes=4 * size)
        self.op = op
        self.widths = input_widths(op)
        inputs = len(self.widths)
        self.outputs = tuple(range(inputs, inputs + len(op.writes)))
        numbers = iter(range(len(refs)))
        weights = tuple(None if ref is None else next(numbers) for ref in op.tensors)
        slotted = SlottedOp(op, tuple(range(inputs)), self.outputs, weights, kv_layer=1)
        values = op.heads * op.sizes.value_dim if not isinstance(op, TokenShift) else self.widths[0]
        widths = (*self.widths, *(values for _ in self.outputs))
        instruction = Instruction((slotted,), 0, self.outputs)
        self.one = OneInstruction(instruction, widths, tensors, groups=(group,))
        self.states: Float32 = random_rows(SLOTS * LAYERS, size, 4, 0.3).reshape(SLOTS, LAYERS, size)

    def inputs(self, rows: int) -> dict[int, Float32]:
        """Return random values for the inputs of the op."""
        return {slot: random_rows(rows, width, slot) for slot, width in enumerate(self.widths)}

    def run(self, lengths: tuple[int, ...], table: NDArray[np.int32], inputs: dict[int, Float32]) -> Float32:
        """Return the outputs; change the states."""
        device = OnDevice(self.one, make_step(lengths, tables=(table,)), inputs)
        memory = device.runtime.allocate(self.states.nbytes)
        device.runtime.upload(memory, 0, self.states)
        described = device.keep(np.array([2, 2, *table.reshape(-1)], np.int32))
        states = States(memory.pointer, described, LAYERS)
        sizes = StateRowsSizes.of(self.one.program, device.context.limits)
        scratch = StateRows.allocate(device.runtime, sizes)
        slotted = self.one.instruction.ops[0]
        for launch in launches(self.op, device, slotted, states, scratch):
            device.runtime.launch(launch)
        device.runtime.download(self.states, memory, 0)
        return np.concatenate([device.read(slot) for slot in self.outputs], axis=1)


def assert_same_as_the_reference(op: StateOp) -> None:
    """Run sequences of more and of fewer rows than taps: a new one, one in place, and one to another slot."""
    bench, lengths = Bench(op), (7, 1, 2)
    table, inputs = np.array([[-1, 0], [3, 3], [2, 5]], np.int32), bench.inputs(10)
    pool = StatePool(bench.one.program.groups[0], SLOTS)
    every = np.arange(SLOTS, dtype=np.int32)
    pool.write_blocks(every, bench.states.view(np.uint8).reshape(SLOTS, -1))
    step = make_step(lengths, tables=(table,))
    found = bench.one.reference(step, inputs, {0: pool})
    expected = np.concatenate([found[slot] for slot in bench.outputs], axis=1)
    assert nmse(bench.run(lengths, table, inputs), expected) < MAX_NMSE
    kept = pool.read_blocks(every).view(np.float32).reshape(bench.states.shape)
    for slot in range(SLOTS):
        for layer in range(LAYERS):
            assert nmse(bench.states[slot, layer], kept[slot, layer]) < MAX_NMSE


def assert_same_bits_in_parts(op: StateOp) -> None:
    """Run a sequence at once, and in three steps that each write another slot."""
    bench = Bench(op)
    inputs = bench.inputs(9)
    whole = bench.run((9,), np.array([[-1, 0]], np.int32), inputs)
    parts, begin, slot = [], 0, -1
    for rows, to in ((4, 1), (1, 2), (4, 2)):
        some = {number: value[begin : begin + rows] for number, value in inputs.items()}
        parts.append(bench.run((rows,), np.array([[slot, to]], np.int32), some))
        begin, slot = begin + rows, to
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    first = op.offset if isinstance(op, TokenShift | GeneralizedDelta) else 0
    of_op = slice(first, first + op.state_elements)
    np.testing.assert_array_equal(bench.states[2, 1, of_op], bench.states[0, 1, of_op])
