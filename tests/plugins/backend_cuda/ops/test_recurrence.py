"""States that each row of a sequence changes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from llmd.api import KVGroup, TensorRef
from llmd.api.ops import Recurrence
from llmd.api.step import Float32
from llmd.builtin.reference.states import StatePool
from llmd_backend_cuda.ops.recurrence import States, launch_recurrence
from tests.cuda.one_instruction import OnDevice, OneInstruction, make_step, one_op, random_rows

LAYERS, SLOTS = 2, 6


def _one(width: int) -> OneInstruction:
    group = KVGroup(0, None, 0, 0, tuple(range(LAYERS)), kind="state", state_bytes=4 * width)
    op = Recurrence("x", "out", TensorRef("decay", (width,)), 0, 1)
    decay = random_rows(1, width, 9, 3.0)[0]
    return OneInstruction(one_op(op, 1, (0,), kv_layer=1), (width, width), (decay,), groups=(group,))


def _run(
    one: OneInstruction, lengths: tuple[int, ...], table: NDArray[np.int32], x: Float32, states: Float32
) -> Float32:
    """Return the outputs; change the states."""
    device = OnDevice(one, make_step(lengths, tables=(table,)), {0: x})
    memory = device.runtime.allocate(states.nbytes)
    device.runtime.upload(memory, 0, states)
    described = States(memory.pointer, device.keep(np.array([2, 2, *table.reshape(-1)], np.int32)), LAYERS)
    (found,) = device.run(
        launch_recurrence(device.context, one.instruction.ops[0], device.rows, described), 1
    )
    device.runtime.download(states, memory, 0)
    return found


@pytest.mark.parametrize("width", [5, 48, 130])
def test_states_of_sequences(width: int) -> None:
    one, lengths = _one(width), (7, 1, 4)
    table = np.array([[-1, 0], [3, 3], [2, 5]], np.int32)
    x = random_rows(12, width)
    states: Float32 = random_rows(SLOTS * LAYERS, width, 4).reshape(SLOTS, LAYERS, width)
    pool = StatePool(one.program.groups[0], SLOTS)
    every = np.arange(SLOTS, dtype=np.int32)
    pool.write_blocks(every, states.view(np.uint8).reshape(SLOTS, -1))
    expected = one.reference(make_step(lengths, tables=(table,)), {0: x}, {0: pool})[1]
    found = _run(one, lengths, table, x, states)
    np.testing.assert_allclose(found, expected, rtol=2e-7)
    kept = pool.read_blocks(every).view(np.float32).reshape(-1)
    np.testing.assert_allclose(states.reshape(-1), kept, rtol=2e-7)


def test_a_sequence_has_the_same_bits_in_parts() -> None:
    one, x = _one(48), random_rows(9, 48)
    states: Float32 = np.zeros((SLOTS, LAYERS, 48), np.float32)
    whole = _run(one, (9,), np.array([[-1, 0]], np.int32), x, states)
    first = _run(one, (4,), np.array([[-1, 1]], np.int32), x[:4], states)
    second = _run(one, (5,), np.array([[1, 2]], np.int32), x[4:], states)
    np.testing.assert_array_equal(np.concatenate((first, second)), whole)
    np.testing.assert_array_equal(states[2], states[0])
