"""An op with a matrix for each head on the simulated device and in the reference, over the same steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llmd.api import GatedDelta, KVGroup, StateSpace
from llmd.api.step import Float32
from llmd.builtin.reference.states import StatePool
from llmd_backend_cuda.ops.gated_delta import gated_delta_launches
from llmd_backend_cuda.ops.recurrence import States
from llmd_backend_cuda.ops.state_rows import StateRows, StateRowsSizes
from llmd_backend_cuda.ops.state_space import state_space_launches
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows

LAYERS, SLOTS = 2, 6
MAX_NMSE = 1e-11


class Bench:
    """An op with its tensors, and the states of all slots."""

    def __init__(self, op: GatedDelta | StateSpace) -> None:
        refs = [ref for ref in op.tensors if ref is not None]
        draw = np.random.default_rng(5)
        tensors = [draw.standard_normal(ref.view_shape).astype(np.float32) for ref in refs]
        if op.rates_as == "negative":
            tensors[3] = -np.exp(tensors[3])
        group = KVGroup(0, None, 0, 0, tuple(range(LAYERS)), kind="state", state_bytes=4 * op.state_elements)
        keys, values = (op.sizes.key_heads * op.sizes.key_dim, op.heads * op.sizes.value_dim)
        self.op = op
        self.widths = (keys, keys, values, op.bias.shape[-1], op.heads)[: len(op.reads)]
        numbers = iter(range(len(refs)))
        weights = [None if ref is None else next(numbers) for ref in op.tensors]
        instruction = one_op(op, len(self.widths), weights, kv_layer=1)
        self.one = OneInstruction(instruction, (*self.widths, values), tensors, groups=(group,))
        self.states: Float32 = random_rows(SLOTS * LAYERS, op.state_elements, 4, 0.3).reshape(
            SLOTS, LAYERS, op.state_elements
        )

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
        launches = gated_delta_launches if isinstance(self.op, GatedDelta) else state_space_launches
        for launch in launches(device.context, slotted, device.rows, states, scratch):
            device.runtime.launch(launch)
        device.runtime.download(self.states, memory, 0)
        return device.read(len(self.widths))


def assert_same_as_the_reference(op: GatedDelta | StateSpace) -> None:
    """Run sequences of more and of fewer rows than taps: a new one, one in place, and one to another slot."""
    bench, lengths = Bench(op), (7, 1, 2)
    table, inputs = np.array([[-1, 0], [3, 3], [2, 5]], np.int32), bench.inputs(10)
    pool = StatePool(bench.one.program.groups[0], SLOTS)
    every = np.arange(SLOTS, dtype=np.int32)
    pool.write_blocks(every, bench.states.view(np.uint8).reshape(SLOTS, -1))
    step = make_step(lengths, tables=(table,))
    expected = bench.one.reference(step, inputs, {0: pool})[len(bench.widths)]
    assert nmse(bench.run(lengths, table, inputs), expected) < MAX_NMSE
    kept = pool.read_blocks(every).view(np.float32).reshape(bench.states.shape)
    for slot in range(SLOTS):
        for layer in range(LAYERS):
            assert nmse(bench.states[slot, layer], kept[slot, layer]) < MAX_NMSE


def assert_same_bits_in_parts(op: GatedDelta | StateSpace) -> None:
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
    np.testing.assert_array_equal(bench.states[2, 1], bench.states[0, 1])
