"""States of linear attention that each row of a sequence changes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import KVGroup, StageLimits, TensorRef
from llmd.api.state_ops import GatedDelta
from llmd.api.step import Float32
from llmd.builtin.reference.states import StatePool
from llmd_backend_cuda.ops.gated_delta import DeltaRows, DeltaSizes, gated_delta_launches
from llmd_backend_cuda.ops.recurrence import States
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, nmse, one_op, random_rows
from tests.cuda.simulated import NEEDS_COMPILER

pytestmark = NEEDS_COMPILER

LAYERS, SLOTS = 2, 6
MAX_NMSE = 1e-11


def op_of(heads: int, key_heads: int, dims: tuple[int, int], taps: int, **fields: Any) -> GatedDelta:
    """Return an op; with ``by_element``, each element of a key has a decay."""
    key_dim, value_dim = dims
    decays = heads * key_dim if fields.pop("by_element", False) else heads
    keys, values = key_heads * key_dim, heads * value_dim
    q_taps, k_taps, v_taps = (
        TensorRef(name, (width, 1, taps)) for name, width in (("q", keys), ("k", keys), ("v", values))
    )
    return GatedDelta(
        "q",
        "k",
        "v",
        "decay",
        "beta",
        "y",
        q_taps,
        k_taps,
        v_taps,
        rates=TensorRef("rates", (heads,)),
        bias=TensorRef("bias", (decays,)),
        group=0,
        layer=1,
        heads=heads,
        key_heads=key_heads,
        key_dim=key_dim,
        value_dim=value_dim,
        **fields,
    )


OPS = {
    "grouped": op_of(4, 2, (12, 40), 4),
    "tiled": op_of(6, 2, (16, 16), 3, tiled=True),
    "elements": op_of(2, 2, (10, 33), 4, by_element=True),
    "wide": op_of(1, 1, (130, 5), 2, by_element=True),
    "one-tap": op_of(3, 3, (7, 5), 1),
    "negative": op_of(2, 1, (8, 8), 4, rates_as="negative"),
}


class Bench:
    """An op with its tensors, and the states of all slots."""

    def __init__(self, op: GatedDelta) -> None:
        shapes = [ref.view_shape for ref in op.tensors if ref is not None]
        draw = np.random.default_rng(5)
        tensors = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
        if op.rates_as == "negative":
            tensors[3] = -np.exp(tensors[3])
        group = KVGroup(0, None, 0, 0, tuple(range(LAYERS)), kind="state", state_bytes=4 * op.state_elements)
        keys, values = op.key_heads * op.key_dim, op.heads * op.value_dim
        widths = (keys, keys, values, op.bias.shape[-1], op.heads, values)
        instruction = one_op(op, 5, range(5), kv_layer=1)
        self.op, self.widths = op, widths
        self.one = OneInstruction(instruction, widths, tensors, groups=(group,))
        self.states: Float32 = random_rows(SLOTS * LAYERS, op.state_elements, 4, 0.3).reshape(
            SLOTS, LAYERS, op.state_elements
        )

    def inputs(self, rows: int) -> dict[int, Float32]:
        return {slot: random_rows(rows, width, slot) for slot, width in enumerate(self.widths[:5])}

    def run(self, lengths: tuple[int, ...], table: NDArray[np.int32], inputs: dict[int, Float32]) -> Float32:
        """Return the outputs; change the states."""
        device = OnDevice(self.one, make_step(lengths, tables=(table,)), inputs)
        memory = device.runtime.allocate(self.states.nbytes)
        device.runtime.upload(memory, 0, self.states)
        described = device.keep(np.array([2, 2, *table.reshape(-1)], np.int32))
        states = States(memory.pointer, described, LAYERS)
        scratch = DeltaRows.allocate(device.runtime, DeltaSizes.of(self.one.program, device.context.limits))
        slotted = self.one.instruction.ops[0]
        for launch in gated_delta_launches(device.context, slotted, device.rows, states, scratch):
            device.runtime.launch(launch)
        device.runtime.download(self.states, memory, 0)
        return device.read(5)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.exhaustive if n in {"tiled", "one-tap"} else ()) for n in OPS],
)
def test_outputs_and_states_are_those_of_the_reference(name: str) -> None:
    """Sequences of more and of fewer rows than taps: a new one, one in place, and one to another slot."""
    bench, lengths = Bench(OPS[name]), (7, 1, 2)
    table, inputs = np.array([[-1, 0], [3, 3], [2, 5]], np.int32), bench.inputs(10)
    pool = StatePool(bench.one.program.groups[0], SLOTS)
    every = np.arange(SLOTS, dtype=np.int32)
    pool.write_blocks(every, bench.states.view(np.uint8).reshape(SLOTS, -1))
    expected = bench.one.reference(make_step(lengths, tables=(table,)), inputs, {0: pool})[5]
    assert nmse(bench.run(lengths, table, inputs), expected) < MAX_NMSE
    kept = pool.read_blocks(every).view(np.float32).reshape(bench.states.shape)
    for slot in range(SLOTS):
        for layer in range(LAYERS):
            assert nmse(bench.states[slot, layer], kept[slot, layer]) < MAX_NMSE


def test_a_sequence_has_the_same_bits_in_parts() -> None:
    bench = Bench(OPS["grouped"])
    inputs = bench.inputs(9)
    whole = bench.run((9,), np.array([[-1, 0]], np.int32), inputs)
    parts, begin, slot = [], 0, -1
    for rows, to in ((4, 1), (1, 2), (4, 2)):
        some = {number: value[begin : begin + rows] for number, value in inputs.items()}
        parts.append(bench.run((rows,), np.array([[slot, to]], np.int32), some))
        begin, slot = begin + rows, to
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(bench.states[2, 1], bench.states[0, 1])


def test_programs_without_such_layers_need_no_memory() -> None:
    op = OPS["grouped"]
    program = Bench(op).one.program
    limits = StageLimits(10, 1, 1)
    assert DeltaSizes.of(program, limits).num_bytes == 40 * (op.sizes.width + 4 + 4)
    assert DeltaSizes.of(msgspec.structs.replace(program, instructions=()), limits).num_bytes == 0
